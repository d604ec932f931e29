// reigen: matmul(a, b): one axis splits a's rows and b's columns; gather one of them over it first:
// matmul(redistribute<...>(a), b)
#include <promise.hpp>

void promise(const Matrix<split_rows(dp | tp)>& x, const Matrix<split_cols(tp)>& w) {
#ifdef REIGEN_FORBIDDEN
    matmul(x, w);
#else
    matmul(redistribute<split_rows(dp)>(x), w);
#endif
}
