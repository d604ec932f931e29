// reigen: matmul multiplies matrices of one scalar type
#include <promise.hpp>

void promise(const Matrix<replicated>& x, const Sharded<double, replicated>& w, const Matrix<replicated>& v) {
#ifdef REIGEN_FORBIDDEN
    matmul(x, w);
#else
    matmul(x, v), static_cast<void>(w);
#endif
}
