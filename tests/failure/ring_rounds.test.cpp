#include "comm/values.hpp"

#include <reigen/attention/ring.hpp>
#include <reigen/comm/faulty.hpp>

#include <gtest/gtest.h>

#include <cmath>

namespace ring_rounds_test {

// mlx#4475: a ring that deadlocked one call in thirty. nccl#479: one over an odd number of ranks whose sends do not
// buffer. Short blocks, many rounds, data that differ by rank and place.

using namespace reigen;

namespace {

constexpr int rounds = 500;
const std::vector<Index> counts = {1, 2, 5, 7};

Communicator delayed(const Communicator& world) {
    return faulty(unchecked(world), {.delay = 2e-5, .late = 2});
}

Communicator unbuffered(const Communicator& world) {
    return faulty(unchecked(world), {.late = 1, .synchronous = true});
}

/// Sends every rank's block all the way round, in the direction of the round, and checks it wherever it comes by.
void expect_blocks(const Communicator& ring, int round) {
    const Index count = counts[std::size_t(round % 4)];
    const std::vector<Index> sizes(std::size_t(ring.size()), count);
    const RingRoute route(ring.size(), [](int, int) { return true; });
    int visits = 0;
    const auto pack = [&](std::span<int> block) {
        std::ranges::copy(small_values<int>(ring.rank() + round, count), block.begin());
    };
    rotate<int>(ring, route, Turn::onward, sizes, pack, [&](const Visit<int>& visit) {
        ++visits;
        if (visit.step > 0) {
            EXPECT_EQ(std::vector<int>(visit.data, visit.data + count), small_values<int>(visit.owner + round, count))
                << "round " << round << ", block of rank " << visit.owner;
        }
    });
    EXPECT_EQ(visits, ring.size());
}

/// One sequence with `count` tokens on every rank.
class Problem {
  public:
    static constexpr Placement tokens = {dp | cp, Axes::none, Axes::none};
    using Matrix = Sharded<float, tokens>;

    Problem(const Communicator& world, Index count)
        : mesh_(world, {{cp, world.size()}}),
          sequences_{1, count * world.size(), SequenceLayout::zigzag},
          q_(matrix(1)),
          k_(matrix(2)),
          v_(matrix(3)) {}

    template <class X>
    auto of(X& x) const {
        return heads(x, sequences_, 4);
    }

    /// Everything that the forward pass gives this rank, and then, if wanted, the backward pass.
    std::vector<float> run(bool with_gradients) const {
        const AttentionOptions options = {.mask = Mask::causal()};
        const auto [out, lse] = ring_attention(of(q_), of(k_), of(v_), options);
        std::vector<float> all;
        append(all, out);
        append(all, lse);
        if (!with_gradients)
            return all;
        auto dq = q_.clone(), dk = k_.clone(), dv = v_.clone();
        ring_attention_backward(of(q_), of(k_), of(v_), out, lse, out, of(dq), of(dk), of(dv), options);
        for (const Matrix* const gradient : {&dq, &dk, &dv})
            append(all, *gradient);
        return all;
    }

  private:
    Matrix matrix(int which) const {
        return Matrix::from_global(mesh_, sequences_.rows(mesh_, dp | cp), 2 * 4, [=](Index i, Index j) {
            return std::sin(float(1 + i) * float(which) + 0.7F * float(j));
        });
    }

    static void append(std::vector<float>& all, const Matrix& matrix) {
        const auto local = matrix.local();
        for (Index i = 0; i < local.rows(); ++i)
            for (Index j = 0; j < local.cols(); ++j)
                all.push_back(local(i, j));
    }

    Mesh mesh_;
    Sequences sequences_;
    Matrix q_, k_, v_;
};

/// The bits of a good transport in every round, every fifth with its backward pass.
void expect_the_same_bits(const Communicator& good, const Communicator& bad, int times) {
    std::vector<Problem> problems;
    std::vector<std::vector<float>> want;
    for (const Index count : counts) {
        want.push_back(Problem(good, count).run(true));
        problems.emplace_back(bad, count);
    }
    for (int round = 0; round < times; ++round) {
        const auto which = std::size_t(round % 4);
        const auto got = problems[which].run(round % 5 == 0);
        EXPECT_TRUE(same_bits(got, {want[which].begin(), want[which].begin() + Index(got.size())}))
            << "round " << round;
    }
}

} // namespace

TEST(ring_rounds, blocks_come_round_on_a_delayed_transport) {
    on_every_world([](const Communicator& world) {
        const Communicator ring = delayed(world);
        for (int round = 0; round < rounds; ++round)
            expect_blocks(ring, round);
    });
}

TEST(ring_rounds, attention_has_the_same_bits_on_a_delayed_transport) {
    on_every_world([](const Communicator& world) { expect_the_same_bits(world, delayed(world), rounds); });
}

TEST(ring_rounds, sends_need_not_buffer) {
    for (const int ranks : {3, 5})
        on_world(ranks, [](const Communicator& world) {
            const Communicator ring = unbuffered(world);
            for (int round = 0; round < rounds; ++round)
                expect_blocks(ring, round);
            expect_the_same_bits(world, ring, 100);
        });
}

} // namespace ring_rounds_test
