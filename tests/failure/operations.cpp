#include "failure/operations.hpp"

#include <reigen/attention/ring.hpp>
#include <reigen/nn/linear.hpp>

#include <cmath>
#include <memory>
#include <utility>

using namespace reigen;

namespace {
namespace steps { // the library has functions of these names too

using Step = std::function<void()>;

/// More than a transport buffers, so that nobody gets by without the others.
constexpr Index size = 100'000;

Step all_reduce(const Communicator& world, Index extra) {
    return [=, values = std::vector<float>(std::size_t(size + extra))]() mutable { world.all_reduce(values); };
}

Step all_gather(const Communicator& world, Index extra) {
    const std::vector<float> mine(std::size_t(size + extra));
    return [=, all = std::vector<float>(mine.size() * std::size_t(world.size()))]() mutable {
        world.all_gather(mine, all);
    };
}

Step reduce_scatter(const Communicator& world, Index extra) {
    const std::vector<float> all(std::size_t((size + extra) * world.size()));
    return [=, mine = std::vector<float>(std::size_t(size + extra))]() mutable { world.reduce_scatter(all, mine); };
}

/// From the rank that fails.
Step broadcast(const Communicator& world, Index extra) {
    return [=, values = std::vector<float>(std::size_t(size + extra))]() mutable {
        world.broadcast(values, 1 % world.size());
    };
}

Step all_to_all(const Communicator& world, Index extra) {
    const std::vector<Index> parts(std::size_t(world.size()), size + extra);
    const std::vector<float> out(std::size_t((size + extra) * world.size()));
    return [=, in = out]() mutable { world.all_to_all(out, parts, in, parts); };
}

Step barrier(const Communicator& world, Index) {
    return [=] { world.barrier(); };
}

Step split(const Communicator& world, Index) {
    return [=] { static_cast<void>(world.split(0, world.rank())); };
}

Step messages(const Communicator& world, Index extra) {
    const int next = (world.rank() + 1) % world.size();
    const int previous = (world.rank() + world.size() - 1) % world.size();
    return [=] {
        auto receive = world.start_receive(Buffer<float>(size + extra), previous);
        world.send(std::vector<float>(std::size_t(size + extra)), next);
        receive.wait();
    };
}

/// Tokens of one sequence over the ranks.
struct Attention {
    static constexpr Placement tokens = {dp | cp, Axes::none, Axes::none};

    Attention(const Communicator& world, Index extra)
        : mesh(world, {{cp, world.size()}}), sequences{1, 50 * world.size() + extra, SequenceLayout::zigzag} {}

    auto matrix() const {
        return Sharded<float, tokens>::from_global(mesh, sequences.rows(mesh, dp | cp), 2 * 16,
                                                   [](Index i, Index j) { return std::sin(float(i + 7 * j)); });
    }

    template <class X>
    auto of(X& x) const {
        return heads(x, sequences, 16);
    }

    Mesh mesh;
    Sequences sequences;
};

Step ring_forward(const Communicator& world, Index extra) {
    return [attention = std::make_shared<Attention>(world, extra)] {
        const auto q = attention->matrix();
        ring_attention(attention->of(q), attention->of(q), attention->of(q), {.mask = Mask::causal()});
    };
}

/// Every rank's forward pass is as if it were alone, so that only the backward pass communicates.
Step ring_backward(const Communicator& world, Index extra) {
    return [attention = std::make_shared<Attention>(world, extra)] {
        const auto q = attention->matrix();
        auto dq = q.clone(), dk = q.clone(), dv = q.clone();
        const auto lse = Sharded<float, Attention::tokens>::from_global(
            attention->mesh, attention->sequences.rows(attention->mesh, dp | cp), 2, [](Index, Index) { return 3.0F; });
        ring_attention_backward(attention->of(q), attention->of(q), attention->of(q), q, lse, q, attention->of(dq),
                                attention->of(dk), attention->of(dv), {.mask = Mask::causal()});
    };
}

/// A column- and a row-parallel layer, forwards and backwards.
Step linear(const Communicator& world, Index extra) {
    const Mesh mesh(world, {{tp, world.size()}});
    const Initial normal = {.deviation = 1, .seed = 3};
    using Column = ColumnParallelLinear<float, residual_on_every_rank>;
    using Row = RowParallelLinear<float, residual_on_every_rank>;
    auto column = std::make_shared<Column>(mesh, "column", 64, 128, normal);
    auto row = std::make_shared<Row>(mesh, "row", 128, 64, normal);
    return [=] {
        auto [h, of_column] = column->forward(Column::X::zeros(mesh, 200 + extra, 64));
        auto [y, of_row] = row->forward(std::move(h));
        column->backward(std::move(of_column), row->backward(of_row, y));
    };
}

} // namespace steps
} // namespace

const std::vector<NamedOperation>& operations() {
    static const std::vector<NamedOperation> list = {
        {"all_reduce", steps::all_reduce},
        {"all_gather", steps::all_gather},
        {"reduce_scatter", steps::reduce_scatter},
        {"broadcast", steps::broadcast},
        {"all_to_all", steps::all_to_all},
        {"barrier", steps::barrier},
        {"split", steps::split},
        {"messages", steps::messages},
        {"ring_forward", steps::ring_forward},
        {"ring_backward", steps::ring_backward},
        {"linear", steps::linear},
    };
    return list;
}
