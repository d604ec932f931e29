// reigen: a parameter is not a partial sum
#include <promise.hpp>

void promise(Matrix<partial(tp)>& wrong, Matrix<replicated>& w, Matrix<partial(tp)>& dw) {
#ifdef REIGEN_FORBIDDEN
    parameter_view("w", wrong, dw), static_cast<void>(w);
#else
    parameter_view("w", w, dw), static_cast<void>(wrong);
#endif
}
