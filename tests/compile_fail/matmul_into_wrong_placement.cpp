// reigen: matmul_into(alpha, a, b, beta, c): c is placed neither as the product a b nor as its sum; declare c as
// Sharded<..., product(placement of a, placement of b)>
#include <promise.hpp>

void promise(const Matrix<split_rows(dp)>& x, const Matrix<split_rows(dp) | split_cols(tp)>& dy,
             Matrix<split_rows(tp)>& wrong, Matrix<split_cols(tp) | partial(dp)>& dw) {
#ifdef REIGEN_FORBIDDEN
    matmul_into(1, transpose(x), dy, 1, wrong), static_cast<void>(dw);
#else
    matmul_into(1, transpose(x), dy, 1, dw), static_cast<void>(wrong);
#endif
}
