// reigen: matmul(a, b): b is a partial sum; sum it first: matmul(a, sum(b))
#include <promise.hpp>

void promise(const Matrix<replicated>& a, const Matrix<split_cols(tp) | partial(dp)>& b) {
#ifdef REIGEN_FORBIDDEN
    matmul(a, b);
#else
    matmul(a, sum(b));
#endif
}
