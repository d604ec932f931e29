// reigen: queries, keys and values of attention need one placement; redistribute those that differ
#include <promise.hpp>

#include <reigen/attention/ring.hpp>

void promise(const Matrix<split_rows(cp)>& q, const Matrix<replicated>& k, const Sequences& s) {
#ifdef REIGEN_FORBIDDEN
    ring_attention(heads(q, s, 4), heads(k, s, 4), heads(k, s, 4));
#else
    const auto split = redistribute<split_rows(cp)>(k);
    ring_attention(heads(q, s, 4), heads(split, s, 4), heads(split, s, 4));
#endif
}
