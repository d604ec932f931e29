// reigen: the bias or scale is a partial sum; sum it first: add_bias(x, sum(v))
#include <promise.hpp>

void promise(const Matrix<split_rows(dp)>& x, const Matrix<partial(dp)>& v) {
#ifdef REIGEN_FORBIDDEN
    add_bias(x, v);
#else
    add_bias(x, sum(v));
#endif
}
