// reigen: matmul(a, b): a's columns and b's rows are split over different axes; write redistribute<...>(a) or
// redistribute<...>(b) so that both are split alike
#include <promise.hpp>

void promise(const Matrix<replicated>& x, const Matrix<split_rows(tp)>& w) {
#ifdef REIGEN_FORBIDDEN
    matmul(x, w);
#else
    matmul(redistribute<split_cols(tp)>(x), w);
#endif
}
