// reigen: a bias or scale is split as the columns it is applied to; write add_bias(x, redistribute<split_cols(...)>(v))
// with the axes that split x's columns
#include <promise.hpp>

void promise(const Matrix<split_cols(tp)>& x, const Matrix<replicated>& v) {
#ifdef REIGEN_FORBIDDEN
    add_bias(x, v);
#else
    add_bias(x, redistribute<split_cols(tp)>(v));
#endif
}
