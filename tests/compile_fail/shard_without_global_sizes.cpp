// reigen: this placement splits the matrix; write shard<...>(mesh, local, rows, cols) with the global sizes
#include <promise.hpp>

void promise(const Mesh& mesh, const Eigen::MatrixXf& part) {
#ifdef REIGEN_FORBIDDEN
    shard<split_cols(tp)>(mesh, part);
#else
    shard<split_cols(tp)>(mesh, part, 2, 8);
#endif
}
