#include "nn/support.hpp"

#include <reigen/matmul/sums.hpp>
#include <reigen/nn/gradients.hpp>
#include <reigen/nn/linear.hpp>
#include <reigen/nn/norm.hpp>

namespace backward_test {

using namespace layer_cases;
using namespace reigen;

namespace {

using Tokens = Sharded<double, residual_over_tp>;

/// Every world along tp, and a square of dp and tp.
void on_token_meshes(const std::function<void(const Mesh&)>& body) {
    on_every_world([&](const Communicator& world) { body(Mesh(world, {{Axes::tp, world.size()}})); });
    on_mesh({{Axes::dp, 2}, {Axes::tp, 2}}, body);
    on_mesh({{Axes::cp, 2}, {Axes::tp, 2}}, body);
}

/// Of 1, 2, 3, 4 those that this rank's tokens are.
double local_sum(const Runs& tokens) {
    double sum = 0;
    for (Index i = 0; i < tokens.size(); ++i)
        sum += double(tokens[i] + 1);
    return sum;
}

/// One parameter for all of 5 heads of two columns, whose gradient of head h is (h + 1, 10 (h + 1)) for each token.
void expect_shared_by_heads(const Mesh& mesh) {
    using Features = Sharded<double, features_over_tp>;
    const auto of_head = [](Index, Index column) { return double((column / 2 + 1) * (column % 2 == 0 ? 1 : 10)); };
    const auto heads =
        Features::from_global(mesh, 4, Partition::balanced(10, mesh.size(tp), 2), of_head); // empty beyond five ranks
    Sharded<double, shared_sums(features_over_tp)> own(mesh, 1, 2);
    shared_sums_into(heads, 0, own);
    const auto all = redistribute<replicated>(own);
    EXPECT_EQ(all.local()(0, 0), 4 * 15);
    EXPECT_EQ(all.local()(0, 1), 4 * 150);
}

} // namespace

// Megatron#1446, gpt-neox#1257: norms whose tokens are split over tp, their gradients left as each rank had them.
TEST(faults, megatron_1446_norm_gradients_of_split_tokens_are_summed) {
    on_token_meshes([](const Mesh& mesh) {
        Norm<double, residual_over_tp> norm(mesh, "norm", 2, NormKind::layer_norm, 0);
        const auto sign = [](Index, Index j) { return j == 0 ? -1 : 1; }; // its own normal form
        auto [y, saved] = norm.forward(Tokens::from_global(mesh, 4, 2, sign));
        norm.backward(std::move(saved), Tokens::from_global(mesh, 4, 2, [](Index i, Index) { return i + 1; }));
        const auto parameters = norm.parameters();
        const double mine = local_sum(y.row_runs());
        EXPECT_EQ(parameters[0].gradient(0, 1), mine);
        EXPECT_EQ(parameters[1].gradient(0, 0), mine);
        synchronise_gradients<double>(parameters);
        Dense scale(1, 2), shift(1, 2);
        scale << -10, 10;
        shift << 10, 10;
        expect_gradient(parameters[0], scale, 0);
        expect_gradient(parameters[1], shift, 0);
    });
}

// Megatron#7452: a parameter that split heads share; Automodel#3822: what every rank has worked out alike stays.
TEST(faults, megatron_7452_what_split_heads_share_is_summed_and_what_ranks_repeat_is_not) {
    on_token_meshes([](const Mesh& mesh) {
        expect_shared_by_heads(mesh);
        const Dense repeated = waves(1, 3, 4);
        const auto x = Sharded<double, replicated>::from_global(mesh, repeated);
        const auto sums = redistribute<replicated>(column_sums(x));
        Sharded<double, replicated> shared(mesh, 1, 2);
        shared_sums_into(x, 0, shared);
        for (Index j = 0; j < 4; ++j)
            EXPECT_EQ(sums.local()(0, j), repeated(0, j) + repeated(1, j) + repeated(2, j));
        const double want =
            (((((repeated(0, 0) + repeated(0, 2)) + repeated(1, 0)) + repeated(1, 2)) + repeated(2, 0)) +
             repeated(2, 2));
        EXPECT_EQ(shared.local()(0, 0), want);
    });
}

namespace {

template <Placement Residual>
void expect_bias_gradients_of_four(const Mesh& mesh) {
    RowParallelLinear<double, Residual> row(mesh, "row", 3, 2, {});
    ColumnParallelLinear<double, Residual> column(mesh, "column", 2, 3, {});
    auto x = Sharded<double, features_over_tp>::from_global(mesh, waves(1, 4, 3));
    auto [y, saved_row] = row.forward(std::move(x));
    y.local().setOnes();
    (void)row.backward(saved_row, y);
    auto [z, saved_column] = column.forward(std::move(y));
    z.local().setOnes();
    (void)column.backward(std::move(saved_column), z);
    auto parameters = row.parameters();
    append(parameters, column.parameters());
    synchronise_gradients<double>(parameters);
    expect_gradient(parameters[1], Dense::Constant(1, 2, 4), 0);
    expect_gradient(parameters[3], Dense::Constant(1, 3, 4), 0);
}

} // namespace

// torchtitan#4332: a bias gradient that counted its tokens once a rank, or those of one rank alone.
TEST(faults, torchtitan_4332_bias_gradients_count_every_token_once) {
    on_token_meshes([](const Mesh& mesh) {
        expect_bias_gradients_of_four<residual_on_every_rank>(mesh);
        expect_bias_gradients_of_four<residual_over_tp>(mesh);
    });
}

} // namespace backward_test
