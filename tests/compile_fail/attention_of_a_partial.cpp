// reigen: attention of a partial sum is not the sum of attentions; write redistribute<summed(placement)>(x) first
#include <promise.hpp>

#include <reigen/attention/heads.hpp>

void promise(const Matrix<split_cols(tp) | partial(dp)>& q, const Sequences& sequences) {
#ifdef REIGEN_FORBIDDEN
    heads(q, sequences, 4);
#else
    heads(redistribute<split_cols(tp)>(q), sequences, 4);
#endif
}
