// reigen: out, lse and dout are matrices as the forward pass gives them; pass x, not heads(x, ...)
#include <promise.hpp>

#include <reigen/attention/ring.hpp>

void promise(Matrix<split_rows(cp)>& x, const Sequences& s) {
    const auto q = heads(x, s, 4);
    const auto [out, lse] = ring_attention(q, q, q);
#ifdef REIGEN_FORBIDDEN
    ring_attention_backward(q, q, q, out, lse, heads(x, s, 4), q, q, q);
#else
    ring_attention_backward(q, q, q, out, lse, x, q, q, q);
#endif
}
