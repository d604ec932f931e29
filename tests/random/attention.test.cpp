#include "attention/ring_cases.hpp"
#include "random/draw.hpp"

#include <optional>

namespace attention_test {

using namespace random_cases;
using namespace ring_cases;

namespace {

/// Shapes, mask, layouts, scale and mesh of one attention.
struct AttentionCase {
    explicit AttentionCase(Index number) : draw(number, 3) {
        const Index key_heads = draw.between(1, 3);
        const Index group = draw.between(1, 3);
        const Index head_dim = draw.coin() ? 8 * draw.between(1, 4) : draw.between(1, 40);
        const Index value_dim = draw.coin() ? head_dim : draw.between(1, 40);
        shape = {draw.between(1, 3), draw.size(0, 70), draw.size(0, 70), group * key_heads,
                 key_heads,          head_dim,         value_dim};
        if (draw.coin())
            shape.keys = shape.queries;
        dp_ranks = int(draw.between(1, 2));
        cp_ranks = int(draw.between(1, dp_ranks == 1 ? 5 : 2));
        tp_ranks = cp_ranks <= 2 ? int(draw.between(1, 2)) : 1;
        of_queries = drawn_sequences(shape.queries, draw.one_of(all_layouts()));
        of_keys = drawn_sequences(shape.keys, draw.coin() ? of_queries.layout : draw.one_of(all_layouts()));
        mask = drawn_mask();
        if (draw.between(0, 3) == 0)
            scale = double(draw.between(-8, 8)) / 8;
        p = problem(shape, mask);
        p.scale = scale.value_or(p.scale);
    }

    static std::vector<SequenceLayout> all_layouts() { return {std::begin(layouts), std::end(layouts)}; }

    Sequences drawn_sequences(Index length, SequenceLayout layout) {
        return {shape.batch, length, layout, layout == SequenceLayout::striped ? draw.between(1, 4) : 1};
    }

    Mask drawn_mask() {
        switch (draw.between(0, 3)) {
        case 0:
            return Mask::everything();
        case 1:
            return Mask::causal();
        case 2:
            return Mask::window(draw.size(0, 40), draw.size(0, 40));
        default:
            return {std::nullopt, draw.size(0, 40)};
        }
    }

    std::string text() const {
        return concat(shape.text(), ", dp ", dp_ranks, " cp ", cp_ranks, " tp ", tp_ranks, ", ",
                      to_string(of_queries.layout), '/', to_string(of_keys.layout), ", ", to_string(mask), ", scale ",
                      p.scale);
    }

    Draw draw;
    Shape shape;
    int dp_ranks, cp_ranks, tp_ranks;
    Sequences of_queries, of_keys;
    Mask mask;
    std::optional<double> scale;
    ReferenceProblem p;
};

/// Where several ranks hold a key head, each has the gradient of its own copy, and all of them count.
template <class T>
void sum_copies(const Mesh& mesh, Matrix<T>& gradient) {
    if (!gradient.col_partition().overlaps() || gradient.local().rows() == 0)
        return;
    const Runs& columns = gradient.col_runs();
    Eigen::MatrixXd whole = Eigen::MatrixXd::Zero(gradient.local().rows(), gradient.cols());
    for (Index j = 0; j < columns.size(); ++j)
        whole.col(columns[j]) = gradient.local().col(j).template cast<double>();
    mesh[tp].all_reduce(std::span(whole.data(), std::size_t(whole.size())));
    for (Index j = 0; j < columns.size(); ++j)
        gradient.local().col(j) = whole.col(columns[j]).template cast<T>();
}

template <class T>
void check(const AttentionCase& a) {
    const ReferenceOutput want = reference_attention(a.p);
    const ReferenceTensor dout =
        random_tensor(a.shape.batch, a.shape.queries, a.shape.query_heads, a.shape.value_dim, 4);
    const ReferenceTensor dlse = random_tensor(a.shape.batch, a.shape.queries, a.shape.query_heads, 1, 5);
    const ReferenceGradients want_back = reference_attention_backward(a.p, dout, dlse);
    on_threads(a.dp_ranks * a.cp_ranks * a.tp_ranks, [&](const Communicator& world) {
        const Mesh mesh(world, {{Axes::dp, a.dp_ranks}, {Axes::cp, a.cp_ranks}, {Axes::tp, a.tp_ranks}});
        const AttentionOptions options = {.mask = a.mask, .scale = a.scale};
        const Divided<T> d(mesh, a.p, a.of_queries, a.of_keys);
        const auto forward = d.attend(options);
        expect_near(forward, want, a.p, a.text());
        const auto of_out = divided<T>(mesh, dout, a.of_queries, forward.out.col_partition());
        const auto of_lse = divided<T>(mesh, dlse, a.of_queries, forward.lse.col_partition());
        Matrix<T> dq(d.q.spec()), dk(d.k.spec()), dv(d.v.spec());
        ring_attention_backward(d.q_heads(), d.k_heads(), d.v_heads(), forward.out, forward.lse, of_out,
                                heads(dq, a.of_queries, d.head_dim), heads(dk, a.of_keys, d.head_dim),
                                heads(dv, a.of_keys, d.value_dim), options,
                                std::optional<ShardedView<const T, tokens_and_heads>>(of_lse.view()));
        sum_copies(mesh, dk);
        sum_copies(mesh, dv);
        const double bound = 16 * score_bound(a.p) * std::sqrt(double(a.p.v.dim));
        const double sums = std::sqrt(double(a.p.q.tokens * a.p.q.heads / a.p.k.heads)) + 1;
        expect_near(dq, want_back.dq, bound, a.text() + ", dq");
        expect_near(dk, want_back.dk, bound * sums, a.text() + ", dk");
        expect_near(dv, want_back.dv, bound * sums, a.text() + ", dv");
    });
}

} // namespace

TEST(random, attention_forward_and_backward_equal_the_reference) {
    for_each_case([](Index number) {
        AttentionCase a(number);
        a.draw.coin() ? check<float>(a) : check<double>(a);
    });
}

} // namespace attention_test
