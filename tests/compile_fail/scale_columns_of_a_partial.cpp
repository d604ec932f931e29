// reigen: a bias or scale on a partial sum would be counted once on every rank; sum x first: add_bias(sum(x), v)
#include <promise.hpp>

void promise(const Matrix<partial(tp)>& x, const Matrix<replicated>& v) {
#ifdef REIGEN_FORBIDDEN
    scale_columns(x, v);
#else
    scale_columns(sum(x), v);
#endif
}
