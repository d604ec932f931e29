// reigen: column_sums_into(x, beta, v): declare v as Sharded<..., column_sums(placement of x)>
#include <promise.hpp>

void promise(const Matrix<split_rows(tp)>& dy, Matrix<replicated>& wrong, Matrix<column_sums(split_rows(tp))>& db) {
#ifdef REIGEN_FORBIDDEN
    column_sums_into(dy, 1, wrong), static_cast<void>(db);
#else
    column_sums_into(dy, 1, db), static_cast<void>(wrong);
#endif
}
