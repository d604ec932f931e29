// reigen: column and row sums are not taken of a partial sum; sum it first: sum(x)
#include <promise.hpp>

void promise(const Matrix<partial(tp)>& x) {
#ifdef REIGEN_FORBIDDEN
    row_maxima(x);
#else
    row_maxima(sum(x));
#endif
}
