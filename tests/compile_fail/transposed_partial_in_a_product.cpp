// reigen: matmul(a, b): a is a partial sum; sum it first: matmul(sum(a), b)
#include <promise.hpp>

void promise(const Matrix<split_cols(tp) | partial(dp)>& dw, const Matrix<replicated>& x) {
#ifdef REIGEN_FORBIDDEN
    matmul(transpose(dw), x);
#else
    matmul(transpose(sum(dw)), x);
#endif
}
