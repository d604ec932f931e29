// reigen: matmul_reduce_scatter: sums travel in their own type, since each summand would be rounded; leave the wire's
// type out
#include <promise.hpp>

#include <reigen/matmul/matmul_reduce_scatter.hpp>

void promise(const Matrix<split_cols(tp)>& h, const Matrix<split_rows(tp)>& w) {
#ifdef REIGEN_FORBIDDEN
    matmul_reduce_scatter<split_rows(tp), WireType::bf16>(h, w);
#else
    matmul_reduce_scatter<split_rows(tp)>(h, w);
#endif
}
