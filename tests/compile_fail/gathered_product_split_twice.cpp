// reigen: matmul(a, b): one axis splits a's rows and b's columns; gather one of them over it first:
// matmul(redistribute<...>(a), b)
#include <promise.hpp>

#include <reigen/matmul/all_gather_matmul.hpp>

void promise(const Matrix<split_rows(dp | tp)>& x, const Matrix<split_cols(tp)>& w) {
#ifdef REIGEN_FORBIDDEN
    all_gather_matmul<split_rows(tp)>(x, w);
#else
    all_gather_matmul<split_rows(dp)>(x, w);
#endif
}
