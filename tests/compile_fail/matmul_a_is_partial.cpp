// reigen: matmul(a, b): a is a partial sum; sum it first: matmul(sum(a), b)
#include <promise.hpp>

void promise(const Matrix<partial(tp)>& a, const Matrix<split_cols(tp)>& w) {
#ifdef REIGEN_FORBIDDEN
    matmul(a, w);
#else
    matmul(sum(a), w);
#endif
}
