// reigen: column and row sums are not taken of a partial sum; sum it first: sum(x)
#include <promise.hpp>

void promise(const Matrix<partial(tp)>& x) {
#ifdef REIGEN_FORBIDDEN
    row_sums(x);
#else
    row_sums(sum(x));
#endif
}
