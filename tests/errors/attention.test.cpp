#include "errors/wrong_calls.hpp"

#include <reigen/attention/ring.hpp>

namespace attention_test {

using namespace wrong_calls;

namespace {

constexpr auto shape_error = Refused::shape;
constexpr auto argument_error = Refused::argument;

using Tokens = Sharded<float, Placement{dp | cp, tp, Axes::none}>;

/// Tokens of some heads, over cp.
struct Part {
    Sequences sequences;
    Index head_dim;
    Tokens matrix;

    Part(const Mesh& mesh, const Sequences& s, Index heads, Index dim)
        : sequences(s), head_dim(dim), matrix(Tokens::zeros(mesh, s.rows(mesh, dp | cp), heads * dim)) {}

    auto heads() const { return reigen::heads(matrix, sequences, head_dim); }
    auto heads() { return reigen::heads(matrix, sequences, head_dim); }
};

constexpr Sequences two_of_eight = {2, 8, SequenceLayout::zigzag};

/// q with 4 heads of 8 on k and v of their own shapes.
void attend(const Communicator& world, const Part& k, const Part& v, const AttentionOptions& options = {}) {
    const Part q(over(world, cp), two_of_eight, 4, 8);
    ring_attention(q.heads(), k.heads(), v.heads(), options);
}

void attend(const Communicator& world, const AttentionOptions& options) {
    const Part k(over(world, cp), two_of_eight, 2, 8);
    attend(world, k, k, options);
}

/// k and v of one shape.
void attend(const Communicator& world, const Sequences& s, Index heads, Index head_dim) {
    const Part k(over(world, cp), s, heads, head_dim);
    attend(world, k, k);
}

const std::vector<WrongCall> views = {
    {"heads of no columns", shape_error, "head_dim is 0",
     [](auto& world) { Part(over(world, cp), two_of_eight, 4, 0).heads(); }},
    {"heads of negative columns", shape_error, "head_dim is -8",
     [](auto& world) { heads(Part(over(world, cp), two_of_eight, 4, 8).matrix.view(), two_of_eight, -8); }},
    {"columns that are no whole heads", shape_error, "are not whole heads of 7",
     [](auto& world) { heads(Part(over(world, cp), two_of_eight, 4, 8).matrix.view(), two_of_eight, 7); }},
    {"rows of other sequences", shape_error,
     "do not lie as the tokens of 3 zigzag sequences of 8 over dp|cp; divide them by sequences.rows(mesh, dp|cp)",
     [](auto& world) {
         heads(Part(over(world, cp), two_of_eight, 4, 8).matrix.view(), {3, 8, SequenceLayout::zigzag}, 8);
     }},
    {"rows in another layout", shape_error, "do not lie as the tokens of 2 striped sequences of 8",
     [](auto& world) {
         heads(Part(over(world, cp), two_of_eight, 4, 8).matrix.view(), {2, 8, SequenceLayout::striped}, 8);
     },
     2},
    {"sequences of negative length", argument_error, "2 sequences of -8",
     [](auto& world) { heads(Part(over(world, cp), two_of_eight, 4, 8).matrix.view(), {2, -8}, 8); }},
    {"heads of a column-major matrix", argument_error, "this view has column stride",
     [](auto& world) {
         const Mesh mesh = over(world, tp); // every rank has tokens
         Eigen::MatrixXf mine(16, 8);
         heads(shard<split_rows(dp | cp)>(mesh, mine, two_of_eight.rows(mesh, dp | cp), 8), two_of_eight, 8);
     }},
};

const std::vector<WrongCall> arguments = {
    {"keys of another batch", shape_error, "q is B 2, N 8, 4 heads of 8; k is B 3, N 8, 2 heads of 8",
     [](auto& world) { attend(world, {3, 8, SequenceLayout::zigzag}, 2, 8); }},
    {"heads that do not group", shape_error, "k is B 2, N 8, 3 heads of 8",
     [](auto& world) { attend(world, two_of_eight, 3, 8); }},
    {"more key heads than query heads", shape_error, "k is B 2, N 8, 8 heads of 8",
     [](auto& world) { attend(world, two_of_eight, 8, 8); }},
    {"no key heads", shape_error, "k is B 2, N 8, 0 heads of 8",
     [](auto& world) { attend(world, two_of_eight, 0, 8); }},
    {"keys of another head_dim", shape_error, "k is B 2, N 8, 2 heads of 4",
     [](auto& world) { attend(world, two_of_eight, 2, 4); }},
    {"values of another length", shape_error, "v is B 2, N 9, 2 heads of 8: keys and values differ",
     [](auto& world) {
         attend(world, {over(world, cp), two_of_eight, 2, 8}, {over(world, cp), {2, 9, SequenceLayout::zigzag}, 2, 8});
     }},
    {"values of other heads", shape_error, "v is B 2, N 8, 4 heads of 8: keys and values differ",
     [](auto& world) { attend(world, {over(world, cp), two_of_eight, 2, 8}, {over(world, cp), two_of_eight, 4, 8}); }},
    {"values of another batch", shape_error, "v is B 1, N 16",
     [](auto& world) {
         attend(world, {over(world, cp), two_of_eight, 2, 8}, {over(world, cp), {1, 16, SequenceLayout::zigzag}, 2, 8});
     }},
    {"values on another mesh", shape_error, "different meshes",
     [](auto& world) {
         attend(world, {over(world, cp), two_of_eight, 2, 8},
                {Mesh(world, {{cp, world.size()}, {tp, 1}}), two_of_eight, 2, 8});
     }},
    {"a window that looks back less than 0", argument_error, "window of -1 back",
     [](auto& world) { attend(world, {.mask = Mask::window(-1)}); }},
    {"a window that looks ahead less than 0", argument_error, "-2 ahead",
     [](auto& world) { attend(world, {.mask = {std::nullopt, -2}}); }},
    {"a scale that is no number", argument_error, "scale is nan",
     [](auto& world) { attend(world, {.scale = not_a_number}); }},
    {"a scale without end", argument_error, "scale is -inf", [](auto& world) { attend(world, {.scale = -infinity}); }},
    {"a scale that the scalars cannot hold", argument_error, "scale is 1e+39",
     [](auto& world) { attend(world, {.scale = 1e39}); }},
};

/// Backward with one argument replaced.
struct Backward {
    Mesh mesh;
    Part q, k, dq, dk, dv;
    Attended<float, Tokens::placement> forward;

    explicit Backward(const Communicator& world)
        : mesh(over(world, cp)),
          q(mesh, two_of_eight, 4, 8),
          k(mesh, two_of_eight, 2, 8),
          dq(mesh, two_of_eight, 4, 8),
          dk(mesh, two_of_eight, 2, 8),
          dv(mesh, two_of_eight, 2, 8),
          forward{Tokens::zeros(mesh, q.matrix.row_partition(), 32), Tokens::zeros(mesh, q.matrix.row_partition(), 4)} {
    }

    void run(const Tokens& out, const Tokens& lse, const Tokens& dout, Part& dkeys,
             const std::optional<ShardedView<const float, Tokens::placement>>& dlse = {}) {
        ring_attention_backward(std::as_const(q).heads(), std::as_const(k).heads(), std::as_const(k).heads(), out, lse,
                                dout, dq.heads(), dkeys.heads(), dv.heads(), {}, dlse);
    }
};

const std::vector<WrongCall> gradients = {
    {"an output of other columns", shape_error, "out is 16x4",
     [](auto& world) {
         Backward b(world);
         b.run(b.forward.lse, b.forward.lse, b.forward.out, b.dk);
     }},
    {"an incoming gradient of other columns", shape_error, "dout is 16x16",
     [](auto& world) {
         Backward b(world);
         b.run(b.forward.out, b.forward.lse, b.k.matrix, b.dk);
     }},
    {"an lse for every column", shape_error, "lse is 16x32",
     [](auto& world) {
         Backward b(world);
         b.run(b.forward.out, b.forward.out, b.forward.out, b.dk);
     }},
    {"an lse gradient for every column", shape_error, "dlse is 16x32",
     [](auto& world) {
         Backward b(world);
         b.run(b.forward.out, b.forward.lse, b.forward.out, b.dk, std::as_const(b.forward.out).view());
     }},
    {"gradients of keys and values in one matrix", Refused::argument, "dk is the memory of another argument",
     [](auto& world) {
         Backward b(world);
         b.run(b.forward.out, b.forward.lse, b.forward.out, b.dv);
     }},
    {"a gradient of the keys over the keys", Refused::argument, "dk is the memory of another argument",
     [](auto& world) {
         Backward b(world);
         b.run(b.forward.out, b.forward.lse, b.forward.out, b.k);
     }},
    {"a gradient of the keys with the queries' heads", shape_error, "dk is B 2, N 8, 4 heads of 8",
     [](auto& world) {
         Backward b(world);
         b.run(b.forward.out, b.forward.lse, b.forward.out, b.dq);
     }},
    {"a gradient of the keys in another layout", shape_error, "dk is B 2, N 8, 2 heads of 8, or lies on other ranks",
     [](auto& world) {
         Backward b(world);
         Part striped(b.mesh, {2, 8, SequenceLayout::striped}, 2, 8);
         b.run(b.forward.out, b.forward.lse, b.forward.out, striped);
     },
     2},
};

} // namespace

TEST(errors, of_views_of_heads) {
    expect_refused(views);
}

TEST(errors, of_attention) {
    expect_refused(arguments);
}

TEST(errors, of_gradients_of_attention) {
    expect_refused(gradients);
}

} // namespace attention_test
