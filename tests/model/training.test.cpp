// What training does to the model: the same on every mesh, bit for bit on every rank that holds a copy, and in memory.

#include "model/support.hpp"

#include <reigen/nn/adamw.hpp>

namespace training_test {

using namespace model_test;

namespace {

/// This rank's numbers, of a parameter or its gradient, at their global places; -infinity elsewhere.
reigen::RowMatrix<double> placed(const ParameterView<double>& parameter, Strided<double> local) {
    auto all = RowMatrix<double>::Constant(parameter.rows, parameter.cols, -INFINITY).eval();
    const ShardSpec spec = parameter.spec();
    for (Index i = 0; i < local.rows; ++i)
        for (Index j = 0; j < local.cols; ++j)
            all(spec.row_runs()[i], spec.col_runs()[j]) = local(i, j);
    return all;
}

/// Whole parameters, from whoever holds them.
reference::Tensors gathered_values(const std::vector<ParameterView<double>>& parameters) {
    reference::Tensors tensors;
    for (const auto& parameter : parameters) {
        auto all = placed(parameter, parameter.value);
        parameter.mesh.world().all_reduce(std::span(all.data(), std::size_t(all.size())), Reduction::max);
        tensors[parameter.name] = all;
    }
    return tensors;
}

/// That every copy of every element has the same bits on all ranks.
void expect_equal_copies(const Mesh& mesh, const ParameterView<double>& parameter, Strided<double> local) {
    const auto mine = placed(parameter, local);
    auto largest = mine;
    mesh.world().all_reduce(std::span(largest.data(), std::size_t(largest.size())), Reduction::max);
    Index different = 0;
    for (Index i = 0; i < mine.size(); ++i)
        different += mine.data()[i] != -INFINITY && mine.data()[i] != largest.data()[i];
    EXPECT_EQ(different, 0) << parameter.name;
}

template <Placement Residual>
class Trainer {
  public:
    Trainer(const Mesh& mesh, const Case& c, SequenceLayout layout)
        : mesh_(mesh), model_(mesh, c, layout), optimizer_(model_.gpt.parameters(), {.weight_decay = 0.1}) {}

    /// One clipped step from two micro-batches; the loss before it.
    double step() {
        const auto parameters = optimizer_.parameters();
        zero_gradients(parameters);
        const double loss = (model_.forward_and_backward(0.5) + model_.forward_and_backward(0.5)) / 2;
        synchronise_gradients(parameters);
        optimizer_.step(0.01, clip_factor(gradient_norm(parameters), 0.1));
        return loss;
    }

    std::vector<double> losses(int steps) {
        std::vector<double> result;
        for (int i = 0; i < steps; ++i)
            result.push_back(step());
        return result;
    }

    std::vector<ParameterView<double>> parameters() {
        return {optimizer_.parameters().begin(), optimizer_.parameters().end()};
    }

  private:
    Mesh mesh_;
    Sharding<double, Residual> model_;
    AdamW<double> optimizer_;
};

const Case cases[] = {uneven_heads(), shared_heads()};

TEST(training, starts_with_the_same_weights_on_every_mesh) {
    for (const Case& c : cases) {
        Gpt<double, residual_on_every_rank> alone(Mesh(), c.config);
        const reference::Tensors want = gathered_values(alone.parameters());
        for (const auto& axes : model_meshes)
            on_mesh(axes, [&](const Mesh& mesh) {
                Gpt<double, residual_over_tp> model(mesh, c.config);
                for (const auto& parameter : model.parameters())
                    expect_at_global_indices(parameter.value, parameter.spec().row_runs(), parameter.spec().col_runs(),
                                             want.at(parameter.name), 0, parameter.name);
            });
    }
}

TEST(training, has_the_losses_and_ends_with_the_weights_of_one_rank_on_every_mesh) {
    for (const Case& c : cases) {
        Trainer<residual_on_every_rank> alone(Mesh(), c, SequenceLayout::contiguous);
        const std::vector<double> want = alone.losses(4);
        const reference::Tensors weights = gathered_values(alone.parameters());
        EXPECT_LT(want.back(), want.front());
        for (const auto& axes : model_meshes)
            on_mesh(axes, [&](const Mesh& mesh) {
                SCOPED_TRACE(c.name + " on " + to_string(axes));
                Trainer<residual_over_tp> trainer(mesh, c, SequenceLayout::zigzag);
                const std::vector<double> losses = trainer.losses(4);
                for (std::size_t step = 0; step < losses.size(); ++step)
                    EXPECT_NEAR(losses[step], want[step], 1e-12);
                for (const auto& parameter : trainer.parameters())
                    expect_at_global_indices(parameter.value, parameter.spec().row_runs(), parameter.spec().col_runs(),
                                             weights.at(parameter.name), 1e-8, parameter.name);
            });
    }
}

template <Placement Residual>
void expect_equal_copies_after_training(const Mesh& mesh, const Case& c) {
    Trainer<Residual> trainer(mesh, c, SequenceLayout::striped);
    const std::vector<double> losses = trainer.losses(3);
    std::vector<double> largest = losses;
    mesh.world().all_reduce(largest, Reduction::max);
    EXPECT_EQ(losses, largest);
    for (const auto& parameter : trainer.parameters()) {
        expect_equal_copies(mesh, parameter, parameter.value);
        expect_equal_copies(mesh, parameter, parameter.gradient);
    }
}

TEST(training, leaves_every_copy_with_the_same_bits_on_all_ranks) {
    for (const Case& c : cases)
        for (const auto& axes : model_meshes)
            on_mesh(axes, [&](const Mesh& mesh) {
                SCOPED_TRACE(c.name + " on " + to_string(axes));
                expect_equal_copies_after_training<residual_on_every_rank>(mesh, c);
                expect_equal_copies_after_training<residual_over_tp>(mesh, c);
            });
}

TEST(training, repeats_itself_bit_for_bit) {
    on_mesh({{cp, 2}, {tp, 2}}, [](const Mesh& mesh) {
        const auto run = [&] {
            Trainer<residual_over_tp> trainer(mesh, shared_heads(), SequenceLayout::zigzag);
            const auto losses = trainer.losses(3);
            return std::pair(losses, gathered_values(trainer.parameters()));
        };
        EXPECT_EQ(run(), run());
    });
}

/// Bytes that this rank holds at most, of a use.
Index peak(MemoryUse use) {
    return memory_account()->of(use).peak;
}

template <Placement Residual>
std::map<MemoryUse, Index> peaks_of_one_step(const Mesh& mesh, const Case& c) {
    memory_account()->reset_peaks();
    Trainer<Residual>(mesh, c, SequenceLayout::contiguous).step();
    return {{MemoryUse::weights, peak(MemoryUse::weights)},
            {MemoryUse::optimizer, peak(MemoryUse::optimizer)},
            {MemoryUse::activations, peak(MemoryUse::activations)}};
}

TEST(training, memory_of_a_rank_falls_with_tp_and_of_activations_more_so_with_sequence_parallelism) {
    Case c = uneven_heads();
    c.config.width = 16;
    c.config.vocabulary = 64;
    c.batch = 4;
    c.length = 16;
    on_mesh({{tp, 2}}, [&](const Mesh& mesh) {
        auto alone = peaks_of_one_step<residual_on_every_rank>(Mesh(), c);
        auto whole = peaks_of_one_step<residual_on_every_rank>(mesh, c);
        auto divided = peaks_of_one_step<residual_over_tp>(mesh, c);
        EXPECT_LT(double(whole[MemoryUse::weights]), 0.55 * double(alone[MemoryUse::weights]));
        EXPECT_LT(double(whole[MemoryUse::optimizer]), 0.55 * double(alone[MemoryUse::optimizer]));
        EXPECT_LT(double(whole[MemoryUse::activations]), 0.8 * double(alone[MemoryUse::activations]));
        EXPECT_LT(double(divided[MemoryUse::activations]), 0.65 * double(alone[MemoryUse::activations]));
    });
}

} // namespace

} // namespace training_test
