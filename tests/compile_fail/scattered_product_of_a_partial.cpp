// reigen: matmul(a, b): a is a partial sum; sum it first: matmul(sum(a), b)
#include <promise.hpp>

#include <reigen/matmul/matmul_reduce_scatter.hpp>

void promise(const Matrix<split_cols(tp) | partial(dp)>& a, const Matrix<split_rows(tp)>& b) {
#ifdef REIGEN_FORBIDDEN
    matmul_reduce_scatter<split_rows(tp)>(a, b);
#else
    matmul_reduce_scatter<split_rows(tp)>(sum(a), b);
#endif
}
