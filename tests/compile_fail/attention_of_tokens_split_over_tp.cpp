// reigen: attention needs all tokens of this rank's sequences; gather rows that are split over tp first, with redistribute
#include <promise.hpp>

#include <reigen/attention/heads.hpp>

void promise(const Matrix<split_rows(cp | tp)>& q, const Sequences& sequences) {
#ifdef REIGEN_FORBIDDEN
    heads(q, sequences, 4);
#else
    heads(redistribute<split_rows(cp)>(q), sequences, 4);
#endif
}
