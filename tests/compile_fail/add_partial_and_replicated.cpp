// reigen: add(x, y): one is a partial sum and the other is not, it would be counted once on every rank; sum it first:
// sum(x)
#include <promise.hpp>

void promise(const Matrix<partial(tp)>& x, const Matrix<replicated>& residual) {
#ifdef REIGEN_FORBIDDEN
    add(x, residual);
#else
    add(sum(x), residual);
#endif
}
