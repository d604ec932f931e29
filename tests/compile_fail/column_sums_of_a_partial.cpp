// reigen: column and row sums are not taken of a partial sum; sum it first: sum(x)
#include <promise.hpp>

void promise(const Matrix<split_rows(dp) | partial(tp)>& dy) {
#ifdef REIGEN_FORBIDDEN
    column_sums(dy);
#else
    column_sums(sum(dy));
#endif
}
