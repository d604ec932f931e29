// reigen: shard(mesh, matrix) looks at memory it does not own; keep the matrix in a variable
#include <promise.hpp>

void promise(const Mesh& mesh, const Eigen::MatrixXf& x) {
#ifdef REIGEN_FORBIDDEN
    shard<replicated>(mesh, Eigen::MatrixXf(2 * x));
#else
    const Eigen::MatrixXf twice = 2 * x;
    shard<replicated>(mesh, twice);
#endif
}
