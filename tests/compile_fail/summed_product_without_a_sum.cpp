// reigen: matmul_all_reduce(a, b): nothing splits a's columns and b's rows, so there is nothing to sum; write
// matmul(a, b)
#include <promise.hpp>

#include <reigen/matmul/matmul_all_reduce.hpp>

void promise(const Matrix<replicated>& a, const Matrix<split_cols(tp)>& b) {
#ifdef REIGEN_FORBIDDEN
    matmul_all_reduce(a, b);
#else
    matmul(a, b);
#endif
}
