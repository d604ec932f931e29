// reigen: redistribute_adjoint: the gradient is split as x is; it may be partial only over axes over which x is
// replicated
#include <promise.hpp>

void promise(const Matrix<replicated>& dy) {
#ifdef REIGEN_FORBIDDEN
    redistribute_adjoint<split_rows(tp), split_cols(tp)>(dy, 2, 2);
#else
    redistribute_adjoint<split_rows(tp)>(dy, 2, 2);
#endif
}
