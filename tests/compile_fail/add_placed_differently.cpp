// reigen: add(x, y): x and y are placed differently; write add(x, redistribute<...>(y))
#include <promise.hpp>

void promise(const Matrix<split_rows(tp)>& x, const Matrix<split_cols(tp)>& y) {
#ifdef REIGEN_FORBIDDEN
    add(x, y);
#else
    add(x, redistribute<split_rows(tp)>(y));
#endif
}
