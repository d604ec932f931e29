// reigen: all_gather_matmul<To>(x, w): x is a partial sum; sum it first: all_gather_matmul<To>(sum(x), w)
#include <promise.hpp>

#include <reigen/matmul/all_gather_matmul.hpp>

void promise(const Matrix<split_rows(tp) | partial(dp)>& x, const Matrix<split_cols(tp)>& w) {
#ifdef REIGEN_FORBIDDEN
    all_gather_matmul<replicated, WireType::bf16>(x, w);
#else
    all_gather_matmul<replicated, WireType::bf16>(sum(x), w);
#endif
}
