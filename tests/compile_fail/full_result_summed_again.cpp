// reigen: sum(x): x is not a partial sum, every rank of the axis would count it again; use x as it is
#include <promise.hpp>

// tokenspeed#80
void promise(const Matrix<replicated>& x, const Matrix<split_cols(tp)>& w) {
#ifdef REIGEN_FORBIDDEN
    sum(matmul(x, w));
#else
    matmul(x, w);
#endif
}
