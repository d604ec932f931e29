#pragma once

#include <reigen/comm/threads.hpp>
#include <reigen/core/version.hpp>
#include <reigen/layout/redistribute.hpp>
#include <reigen/matmul/matmul.hpp>

/// [2 3] [1 0 1 2; 0 1 3 4] with the two terms of every inner product on different ranks.
inline void check_product(const reigen::Communicator& world) {
    using namespace reigen;
    const Mesh mesh(world, {{tp, world.size()}});
    const Eigen::RowVector2f x(2, 3);
    RowMatrix<float> w(2, 4);
    w << 1, 0, 1, 2, 0, 1, 3, 4;
    const auto my_x = Sharded<float, split_cols(tp)>::from_global(mesh, x);
    const auto my_w = Sharded<float, split_rows(tp)>::from_global(mesh, w);
    const auto y = redistribute<replicated>(matmul(my_x, my_w));
    require(y.local() == Eigen::RowVector4f(2, 3, 11, 16), "the product is ", y.local());
}
