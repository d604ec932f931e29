// reigen: matmul(a, b): a is a partial sum; sum it first: matmul(sum(a), b)
#include <promise.hpp>

void promise(const Matrix<partial(tp)>& x, const Matrix<replicated>& w) {
#ifdef REIGEN_FORBIDDEN
    matmul_same_bits(x, w);
#else
    matmul_same_bits(sum(x), w);
#endif
}
