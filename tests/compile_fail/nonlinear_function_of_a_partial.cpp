// reigen: dropout works on whole rows; redistribute columns or partial sums first
#include <promise.hpp>

#include <reigen/nn/dropout.hpp>

void promise(const Dropout& dropout, Matrix<partial(tp)>& x, const Pass& pass) {
#ifdef REIGEN_FORBIDDEN
    dropout.apply(x, pass);
#else
    auto whole = sum(x);
    dropout.apply(whole, pass);
#endif
}
