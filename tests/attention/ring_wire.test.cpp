#include "attention/ring_cases.hpp"

#include <reigen/attention/audit.hpp>
#include <reigen/comm/faulty.hpp>
#include <reigen/comm/trace.hpp>
#include <reigen/core/buffer_source.hpp>
#include <reigen/core/memory.hpp>

namespace ring_wire_test {

using namespace ring_cases;

// Keys and values that travel as bfloat16: what comes out is what they give rounded beforehand, and half of the bytes,
// or a quarter of double's, go round.

namespace {

constexpr double unit = 1.0 / 256; // the most that rounding to bfloat16 changes of a number

ReferenceTensor rounded(ReferenceTensor tensor) {
    for (double& number : tensor.values)
        number = double(bfloat16(float(number)));
    return tensor;
}

ReferenceProblem rounded_keys(const ReferenceProblem& p) {
    return {p.q, rounded(p.k), rounded(p.v), p.mask, p.scale};
}

using NarrowOptions = AttentionOptionsOn<WireType::bf16>;

NarrowOptions narrow(const ReferenceProblem& p) {
    return {.mask = p.mask};
}

template <class T>
struct Passes {
    Attended<T, tokens_and_heads> forward;
    Matrix<T> dq, dk, dv;
};

template <class T, WireType Wire>
Passes<T> both_passes(const Mesh& mesh, const ReferenceProblem& p, const AttentionOptionsOn<Wire>& options,
                      SequenceLayout layout) {
    const Divided<T> x(mesh, p, layout);
    Passes<T> result = {x.attend(options), Matrix<T>(x.q.spec()), Matrix<T>(x.k.spec()), Matrix<T>(x.v.spec())};
    const ReferenceTensor dout = random_tensor(p.q.batch, p.q.tokens, p.q.heads, p.v.dim, 4);
    ring_attention_backward(x.q_heads(), x.k_heads(), x.v_heads(), result.forward.out, result.forward.lse,
                            divided<T>(mesh, dout, x.of_queries, result.forward.out.col_partition()),
                            heads(result.dq, x.of_queries, x.head_dim), heads(result.dk, x.of_keys, x.head_dim),
                            heads(result.dv, x.of_keys, x.value_dim), options);
    return result;
}

template <class T>
void expect_bits(const Passes<T>& got, const Passes<T>& want, const std::string& what) {
    EXPECT_TRUE(same_bits(got.forward.out, want.forward.out)) << what << ", out";
    EXPECT_TRUE(same_bits(got.forward.lse, want.forward.lse)) << what << ", lse";
    EXPECT_TRUE(same_bits(got.dq, want.dq)) << what << ", dq";
    EXPECT_TRUE(same_bits(got.dk, want.dk)) << what << ", dk";
    EXPECT_TRUE(same_bits(got.dv, want.dv)) << what << ", dv";
}

template <class T>
void expect_bits_of_rounded_keys(const Mesh& mesh, const ReferenceProblem& p, const std::string& what) {
    for (const SequenceLayout layout : layouts)
        expect_bits(both_passes<T>(mesh, p, narrow(p), layout),
                    both_passes<T>(mesh, rounded_keys(p), AttentionOptions{.mask = p.mask}, layout),
                    concat(what, ", ", to_string(p.mask), ", ", to_string(layout)));
}

} // namespace

template <class T>
class ring_wire_of : public testing::Test {};
using Types = testing::Types<float, double, bfloat16>;
TYPED_TEST_SUITE(ring_wire_of, Types);

TYPED_TEST(ring_wire_of, keys_have_the_bits_of_keys_rounded_before) {
    for (const Shape& shape : {Shape{2, 23, 23, 4, 2, 8, 8},
                               {1, 17, 17, 3, 3, 5, 7},
                               {1, 2, 41, 4, 2, 16, 32}, // few rows: keys are streamed past them
                               {1, 18, 7, 2, 1, 8, 8},
                               {1, 3, 0, 2, 1, 8, 8},
                               {1, 2, 2, 2, 2, 8, 8}})
        for (const Mask& mask : {Mask::everything(), Mask::causal(), Mask::window(3, 2)})
            on_every_world([&](const Communicator& world) {
                expect_bits_of_rounded_keys<TypeParam>(ring_of(world), problem(shape, mask), shape.text());
            });
}

TYPED_TEST(ring_wire_of, long_blocks_read_in_place_have_the_bits_of_keys_rounded_before) {
    for (const Mask& mask : {Mask::everything(), Mask::causal(), Mask::window(90)})
        on_every_world([&](const Communicator& world) {
            const Index tokens = 128 * world.size();
            const ReferenceProblem p = problem({1, tokens, tokens, 4, 2, 64, 32}, mask);
            expect_bits_of_rounded_keys<TypeParam>(ring_of(world), p, "in place");
            expect_bits_of_rounded_keys<TypeParam>(ring_of(faulty(world, {})), p, "by messages");
        });
}

TYPED_TEST(ring_wire_of, keys_on_a_mesh_of_several_axes_have_the_bits_of_keys_rounded_before) {
    const ReferenceProblem p = problem({2, 13, 13, 4, 2, 8, 8}, Mask::causal());
    for (const Axes other : {dp, tp})
        on_mesh({{other, 2}, {cp, 2}},
                [&](const Mesh& mesh) { expect_bits_of_rounded_keys<TypeParam>(mesh, p, to_string(other)); });
}

// |lse' - lse| <= u a and |out' - out| <= u (1 + (1 + u) a) max |v|, a the largest scale sum |q k|.
TEST(ring_wire, rounding_moves_lse_and_output_no_further_than_promised) {
    const ReferenceProblem p = problem({2, 40, 40, 4, 2, 16, 8}, Mask::causal());
    const ReferenceOutput exact = reference_attention(p);
    double largest_value = 0;
    for (const double v : p.v.values)
        largest_value = std::max(largest_value, std::abs(v));
    const auto size_of_scores = [&](Index b, Index i, Index h) {
        double largest = 0;
        for (Index j = 0; j <= i; ++j) {
            double sum = 0;
            for (Index c = 0; c < p.q.dim; ++c)
                sum += std::abs(p.q(b, i, h, c) * p.k(b, j, h / 2, c));
            largest = std::max(largest, p.scale * sum);
        }
        return largest;
    };
    on_every_world([&](const Communicator& world) {
        const auto [out, lse] = Divided<double>(ring_of(world), p, SequenceLayout::zigzag).attend(narrow(p));
        double most_of_lse = 0, most_of_out = 0; // of what is promised
        for (Index i = 0; i < lse.local().rows(); ++i)
            for (Index h = 0; h < 4; ++h) {
                const Index b = lse.row_runs()[i] / 40, token = lse.row_runs()[i] % 40;
                const double a = size_of_scores(b, token, h);
                most_of_lse = std::max(most_of_lse, std::abs(lse.local()(i, h) - exact.lse(b, token, h)) / (unit * a));
                const double promised = unit * (1 + (1 + unit) * a) * largest_value;
                for (Index c = 0; c < 8; ++c)
                    most_of_out = std::max(most_of_out,
                                           std::abs(out.local()(i, 8 * h + c) - exact.out(b, token, h, c)) / promised);
            }
        EXPECT_LE(most_of_lse, 1);
        EXPECT_LE(most_of_out, 1);
        EXPECT_GE(most_of_lse, 0.05); // they were rounded, and the promise is not empty
        EXPECT_GE(most_of_out, 0.02);
    });
}

namespace {

/// What this rank sent, in all operations.
Traffic sent(const Trace& trace) {
    Traffic all;
    for (const TraceSummary::Row& row : trace.summary().rows) {
        const TraceCost& mine = row.ranks[std::size_t(trace.world().rank())];
        all = all + Traffic{mine.messages, mine.bytes};
    }
    return all;
}

/// With no mask every block passes all ranks, 2 bytes a number, forward and backward; the sums of their gradients come
/// after them in the type that is computed in.
template <class T>
void expect_bytes(const Communicator& ranks, const ReferenceProblem& p, SequenceLayout layout) {
    const auto numbers = [&](int rank) {
        return p.k.batch * sequences(p.k, layout).positions(ranks.size(), rank).size() * p.k.heads *
               (p.k.dim + p.v.dim);
    };
    const Index all = p.k.batch * p.k.tokens * p.k.heads * (p.k.dim + p.v.dim);
    const Index blocks = all - numbers((ranks.rank() + 1) % ranks.size()), gradients = all - numbers(ranks.rank());
    const Traffic want = {3 * (ranks.size() - 1), 2 * blocks * 2 + gradients * Index(sizeof(Accumulator<T>))};
    const Trace trace(ranks);
    const Mesh mesh = ring_of(trace.world());
    both_passes<T>(mesh, p, narrow(p), layout);
    EXPECT_EQ(mesh[cp].traffic(), ranks.size() == 1 ? Traffic{} : want) << to_string(layout);
    if (numbers(0) * 2 < Index(BufferSource::least_bytes)) { // else read in place, which is no message to trace
        EXPECT_EQ(sent(trace), mesh[cp].traffic()) << to_string(layout);
    }
}

} // namespace

TYPED_TEST(ring_wire_of, two_bytes_a_number_go_round_and_gradients_in_their_own_type) {
    const ReferenceProblem few = problem({2, 22, 22, 8, 2, 8, 4}, Mask::everything()); // uneven over 3 and 4
    on_every_world([&](const Communicator& ranks) {
        const Index tokens = 131 * ranks.size() + 1;
        const ReferenceProblem many = problem({1, tokens, tokens, 2, 2, 64, 32}, Mask::everything());
        for (const SequenceLayout layout : layouts) {
            expect_bytes<TypeParam>(ranks, few, layout);
            expect_bytes<TypeParam>(ranks, many, layout); // read in place
        }
    });
}

TEST(ring_wire, keys_and_values_held_are_two_narrow_blocks_whatever_the_number_of_ranks) {
    const auto peak = [](const Mesh& mesh, const ReferenceProblem& p, SequenceLayout layout) {
        memory_account()->reset_peaks();
        const Index held = memory_account()->of(MemoryUse::keys_values).current;
        both_passes<float>(mesh, p, narrow(p), layout);
        return memory_account()->of(MemoryUse::keys_values).peak - held;
    };
    for (const Index share : {12, 192})
        on_every_world([&](const Communicator& world) {
            const Index tokens = share * world.size(), block = share * 2 * (64 + 32) * 2;
            const ReferenceProblem p = problem({1, tokens, tokens, 4, 2, 64, 32}, Mask::everything());
            const bool in_place = share > 12 && world.backend()->reads_in_place();
            for (const SequenceLayout layout : layouts) {
                EXPECT_EQ(peak(ring_of(world), p, layout), world.size() == 1 || in_place ? block : 2 * block);
                EXPECT_EQ(peak(ring_of(faulty(world, {})), p, layout), world.size() == 1 ? block : 2 * block);
            }
        });
}

TEST(ring_wire, nothing_is_allocated_between_hops) {
    on_every_world([](const Communicator& world) {
        const Index blocks = world.size() == 1 ? 1 : 2;                         // its own is rounded for one rank too
        EXPECT_EQ(allocations_of_attention<WireType::bf16>(world), 5 + blocks); // out, lse, three of the state
    });
}

TEST(ring_wire, audits_take_keys_as_they_were_sent) {
    on_every_world([](const Communicator& world) {
        const ReferenceProblem p = problem({2, 19, 19, 4, 2, 8, 16}, Mask::causal());
        const Divided<double> x(ring_of(world), p, SequenceLayout::zigzag);
        const auto [out, lse] = x.attend(narrow(p));
        const auto error = [&](const auto& options) {
            return audit_attention(x.q_heads(), x.k_heads(), x.v_heads(), out, lse, options, {.rows = 100, .seed = 1})
                .error;
        };
        EXPECT_LT(error(narrow(p)), 1e-13);
        EXPECT_GT(error(AttentionOptions{.mask = p.mask}), 1e-4);
    });
}

TEST(ring_wire, ranks_that_send_different_types_are_told) {
    on_world(2, [](const Communicator& world) {
        const ReferenceProblem p = problem({1, 8, 8, 2, 1, 8, 8}, Mask::causal());
        const Divided<float> x(ring_of(checked(unchecked(world))), p, SequenceLayout::zigzag);
        try {
            if (world.rank() == 0)
                x.attend({.mask = p.mask});
            else
                x.attend(narrow(p));
            ADD_FAILURE() << "no error";
        } catch (const Error& error) {
            EXPECT_NE(std::string(error.what()).find("bfloat16"), std::string::npos) << error.what();
        }
    });
}

} // namespace ring_wire_test
