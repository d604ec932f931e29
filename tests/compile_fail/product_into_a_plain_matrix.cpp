// reigen: a product of sharded matrices is given one that is not; wrap it: shard<Where>(mesh, matrix, rows, cols)
#include <promise.hpp>

void promise(const Mesh& mesh, const Matrix<replicated>& x, const Matrix<replicated>& w, Eigen::MatrixXf& y) {
#ifdef REIGEN_FORBIDDEN
    matmul_into(1, x, w, 0, y);
#else
    matmul_into(1, x, w, 0, shard<replicated>(mesh, y));
#endif
}
