// reigen: redistribute: sums travel in their own type, since each summand would be rounded; leave the wire's type out
#include <promise.hpp>

// TransformerEngine#1761
void promise(const Matrix<partial(tp)>& x) {
#ifdef REIGEN_FORBIDDEN
    redistribute<replicated>(x, WireType::bf16);
#else
    redistribute<replicated>(x);
#endif
}
