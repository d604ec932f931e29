// reigen: matmul_reduce_scatter<To>(a, b): To is the placement of a b with its summed axes among those of its rows;
// for anything else write redistribute<To>(matmul(a, b))
#include <promise.hpp>

#include <reigen/matmul/matmul_reduce_scatter.hpp>

void promise(const Matrix<split_cols(tp)>& a, const Matrix<split_rows(tp)>& b) {
#ifdef REIGEN_FORBIDDEN
    matmul_reduce_scatter<split_cols(tp)>(a, b);
#else
    redistribute<split_cols(tp)>(matmul(a, b));
#endif
}
