#include <train_gpt/training.hpp>

#include <support/memory_report.hpp>

#include <reigen/comm/threads.hpp>

#include <gtest/gtest.h>

#include <map>

namespace memory_test {

// What ranks hold, counted by the allocator, while a small model trains.

using examples::MemoryReport;
using reigen::Index;
using reigen::MemoryEntry;
using reigen::MemoryUse;
using train_gpt::Options;

namespace {

Options small_model() {
    Options options;
    options.layers = 2;
    options.width = 32;
    options.heads = 4;
    options.kv_heads = 4;
    options.context = 32;
    options.batch = 2;
    options.steps = 2;
    return options;
}

/// Peaks of two steps on the mesh.
MemoryReport report_of(const Options& options, const std::vector<reigen::MeshAxis>& axes) {
    int ranks = 1;
    for (const auto& axis : axes)
        ranks *= axis.size;
    const train_gpt::Corpus corpus(train_gpt::load_text(""), options.context);
    MemoryReport result;
    reigen::run_threads(ranks, [&](const reigen::Communicator& world) {
        const auto training = make_training(options, reigen::Mesh(world, axes), corpus);
        training->step(0);
        training->step(1);
        const MemoryReport report = examples::memory_report(world);
        if (world.rank() == 0)
            result = report;
    });
    return result;
}

/// Bytes of one line on every rank; zeros where there is no such line.
std::vector<Index> bytes(const MemoryReport& report, MemoryUse use, reigen::Axes split) {
    for (const auto& line : report.lines)
        if (line.entry == MemoryEntry{use, split})
            return line.peaks;
    return std::vector<Index>(report.total_peaks.size(), 0);
}

void expect_on_all_ranks(const std::vector<Index>& bytes, Index want) {
    for (const Index held : bytes)
        EXPECT_EQ(held, want);
    EXPECT_GT(want, 0);
}

constexpr MemoryUse parameter_uses[] = {MemoryUse::weights, MemoryUse::gradients, MemoryUse::optimizer};

} // namespace

TEST(memory, split_parameters_fall_as_one_over_tp_and_replicated_ones_stay) {
    const MemoryReport one = report_of(small_model(), {{reigen::tp, 1}});
    for (const int ranks : {2, 4}) {
        const MemoryReport report = report_of(small_model(), {{reigen::tp, ranks}});
        for (const MemoryUse use : parameter_uses) {
            expect_on_all_ranks(bytes(report, use, reigen::tp), bytes(one, use, reigen::tp)[0] / ranks);
            expect_on_all_ranks(bytes(report, use, reigen::Axes::none), bytes(one, use, reigen::Axes::none)[0]);
        }
    }
}

TEST(memory, optimizer_state_is_two_numbers_an_element) {
    const MemoryReport report = report_of(small_model(), {{reigen::tp, 2}});
    for (const auto split : {reigen::tp, reigen::Axes::none}) {
        const auto weights = bytes(report, MemoryUse::weights, split);
        EXPECT_EQ(bytes(report, MemoryUse::gradients, split), weights);
        expect_on_all_ranks(bytes(report, MemoryUse::optimizer, split), 2 * weights[0]);
    }
}

TEST(memory, no_rank_holds_more_keys_and_values_than_its_own_and_two_travelling_blocks) {
    Options options = small_model();
    constexpr Index ranks = 4;
    const Index block = options.batch * options.context / ranks * options.kv_heads * (options.width / options.heads) *
                        2 * Index(sizeof(float));
    for (const std::string layout : {"contiguous", "zigzag", "striped"}) {
        options.layout = layout;
        const MemoryReport report = report_of(options, {{reigen::cp, ranks}});
        Index most = 0;
        for (const Index held : bytes(report, MemoryUse::keys_values, reigen::Axes::none)) {
            EXPECT_LE(held, 2 * block) << layout;
            most = std::max(most, held);
        }
        EXPECT_EQ(most, 2 * block) << layout; // or they went another way than the account saw
    }
}

TEST(memory, the_residual_stream_is_split_over_tp_with_sequence_parallelism) {
    Options options = small_model();
    const auto whole_rows = reigen::dp | reigen::cp;
    const auto activations = [&](int ranks, reigen::Axes split) {
        return bytes(report_of(options, {{reigen::tp, ranks}}), MemoryUse::activations, split)[0];
    };
    const Index residual_on_every_rank = activations(2, whole_rows);
    EXPECT_EQ(residual_on_every_rank, activations(1, whole_rows));
    options.sequence_parallel = true;
    EXPECT_LT(activations(2, whole_rows), residual_on_every_rank / 2);
}

} // namespace memory_test
