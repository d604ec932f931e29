// reigen: dropout works on whole rows; redistribute columns or partial sums first
#include <promise.hpp>

#include <reigen/nn/dropout.hpp>

void promise(const Dropout& dropout, const Pass& pass, Matrix<split_rows(dp) | partial(tp)>& y) {
#ifdef REIGEN_FORBIDDEN
    dropout.apply(y, pass);
#else
    auto whole = redistribute<split_rows(dp)>(y);
    dropout.apply(whole, pass);
#endif
}
