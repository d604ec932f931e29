// reigen: an axis may cut rows, cut columns or be summed over, but only one of them
#include <promise.hpp>

void promise(const Mesh& mesh) {
#ifdef REIGEN_FORBIDDEN
    Matrix<split_rows(tp) | split_cols(tp)>(mesh, 2, 2);
#else
    Matrix<split_rows(dp) | split_cols(tp)>(mesh, 2, 2);
#endif
}
