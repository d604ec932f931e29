// reigen: all_gather_matmul<To>(x, w): To is the placement of x with axes taken away from its rows; for anything else
// write matmul(redistribute<To>(x), w)
#include <promise.hpp>

#include <reigen/matmul/all_gather_matmul.hpp>

void promise(const Matrix<split_cols(tp)>& x, const Matrix<split_cols(tp)>& w) {
#ifdef REIGEN_FORBIDDEN
    all_gather_matmul<replicated>(x, w);
#else
    matmul(redistribute<replicated>(x), w);
#endif
}
