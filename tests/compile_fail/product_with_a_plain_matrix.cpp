// reigen: a product of sharded matrices is given one that is not; wrap it: shard<Where>(mesh, matrix, rows, cols)
#include <promise.hpp>

void promise(const Mesh& mesh, const Eigen::MatrixXf& x, const Matrix<split_cols(tp)>& w) {
#ifdef REIGEN_FORBIDDEN
    matmul(x, w);
#else
    matmul(shard<replicated>(mesh, x), w);
#endif
}
