// reigen: a gradient is split as its parameter is; only what it is partial over may differ
#include <promise.hpp>

void promise(Matrix<split_cols(tp)>& w, Matrix<partial(dp)>& wrong, Matrix<split_cols(tp) | partial(dp)>& dw) {
#ifdef REIGEN_FORBIDDEN
    parameter_view("w", w, wrong), static_cast<void>(dw);
#else
    parameter_view("w", w, dw), static_cast<void>(wrong);
#endif
}
