// reigen: matmul(a, b): a is a partial sum; sum it first: matmul(sum(a), b)
#include <promise.hpp>

void promise(const Matrix<partial(tp)>& dy, const Matrix<replicated>& w) {
#ifdef REIGEN_FORBIDDEN
    input_gradient(dy, w);
#else
    input_gradient(sum(dy), w);
#endif
}
