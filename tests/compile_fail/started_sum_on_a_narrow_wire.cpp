// reigen: redistribute: sums travel in their own type, since each summand would be rounded; leave the wire's type out
#include <promise.hpp>

void promise(const Matrix<partial(tp)>& x) {
#ifdef REIGEN_FORBIDDEN
    start_redistribute<replicated, WireType::bf16>(x).wait();
#else
    start_redistribute<replicated>(x).wait();
#endif
}
