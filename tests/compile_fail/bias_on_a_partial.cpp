// reigen: a bias or scale on a partial sum would be counted once on every rank; sum x first: add_bias(sum(x), v)
#include <promise.hpp>

void promise(const Matrix<split_cols(tp)>& h, const Matrix<split_rows(tp)>& w, const Matrix<replicated>& b) {
#ifdef REIGEN_FORBIDDEN
    add_bias(matmul(h, w), b);
#else
    add_bias(sum(matmul(h, w)), b);
#endif
}
