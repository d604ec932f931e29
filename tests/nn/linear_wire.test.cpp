#include "nn/differences.hpp"
#include "support/bits.hpp"

#include <reigen/comm/faulty.hpp>
#include <reigen/nn/embedding.hpp>
#include <reigen/nn/linear.hpp>

namespace linear_wire_test {

using namespace layer_cases;
using namespace reigen;

// Layers whose tokens travel as bfloat16: the bits of the plain products of what `redistribute` gives with that wire,
// two bytes a number, and gradients as far off as is documented. Enough tokens for steps, and few.

namespace {

constexpr WireType narrow = WireType::bf16;
constexpr double unit = 1.0 / 256; // the most that rounding to bfloat16 changes of a number
const Initial normal = {.deviation = 1, .seed = 3};
constexpr Index width = 11;
constexpr Index features = 14;
const Sequences many = {2, 150, SequenceLayout::zigzag};
const Sequences few = {1, 7, SequenceLayout::zigzag}; // uneven, with empty shares over some meshes

/// The layer meshes, their ranks reading each other's memory, and by messages.
void on_both_transports(const std::function<void(const Mesh&, const Sequences&)>& body) {
    on_layer_meshes([&](const Mesh& mesh) {
        for (const Sequences& sequences : {many, few}) {
            body(mesh, sequences);
            body(Mesh(faulty(mesh.world(), {}), mesh.axes()), sequences);
        }
    });
}

template <class X>
X tokens(const Mesh& mesh, const Sequences& sequences, Index columns, int which) {
    return X::from_global(mesh, sequences.rows(mesh, X::placement.rows), columns,
                          [&](Index i, Index j) { return wave(which, i, j); });
}

template <class X, class Y>
void expect_same(const X& x, const Y& y, const char* what) {
    EXPECT_TRUE(same_bits(x.strided(), y.strided())) << what;
}

/// This rank's part of the value of a parameter.
template <class S, Placement Where>
Sharded<S, Where> value_of(const Mesh& mesh, const ParameterView<S>& parameter) {
    Sharded<S, Where> value(mesh, parameter.row_partition, parameter.col_partition);
    detail::for_block(Strided<const S>(parameter.value), value.strided(), detail::AssignElement());
    return value;
}

/// What products see of a matrix of the residual stream.
template <class S, Placement Residual>
auto travelled(const Sharded<S, Residual>& x) {
    if constexpr (Residual == residual_on_every_rank)
        return x.clone(); // nothing travels
    else
        return redistribute<residual_on_every_rank>(x, narrow);
}

template <class S, Placement Residual>
void expect_column_as_plain(const Mesh& mesh, const Sequences& sequences) {
    using Layer = ColumnParallelLinear<S, Residual, narrow>;
    Layer layer(mesh, "column", width, features, normal, false);
    const auto weight = layer.parameters()[0];
    const auto w = value_of<S, split_cols(tp)>(mesh, weight);
    const auto x = tokens<typename Layer::X>(mesh, sequences, width, 1);
    const auto dy = tokens<typename Layer::Y>(mesh, sequences, features, 2);
    auto [y, saved] = layer.forward(x.clone());
    EXPECT_LT(layer.audit(saved, y, {.rows = 1000}).error, 1e-5);
    const auto dx = layer.backward(std::move(saved), dy);

    const auto whole = travelled(x);
    expect_same(y, matmul(whole, w), "y");
    expect_same(dx, redistribute<Residual>(input_gradient(dy, w)), "dx");
    auto dw = Sharded < Accumulator<S>, split_cols(tp) | partial(token_axes) > ::zeros(mesh, width, features);
    matmul_into(1, transpose(whole), dy, 1, dw);
    EXPECT_TRUE(same_bits(weight.gradient, dw.strided())) << "dW";
}

template <class S, Placement Residual>
void expect_row_as_plain(const Mesh& mesh, const Sequences& sequences) {
    using Layer = RowParallelLinear<S, Residual, narrow>;
    Layer layer(mesh, "row", features, width, normal);
    const auto parameters = layer.parameters();
    const auto w = value_of<S, split_rows(tp)>(mesh, parameters[0]);
    const auto x = tokens<typename Layer::X>(mesh, sequences, features, 1);
    const auto dy = tokens<typename Layer::Y>(mesh, sequences, width, 2);
    auto [y, saved] = layer.forward(x.clone());
    const auto dx = layer.backward(saved, dy);

    expect_same(y, redistribute<Residual>(matmul(x, w)), "y");
    const auto whole = travelled(dy);
    expect_same(dx, matmul(whole, transpose(w)), "dx");
    auto dw = Sharded < Accumulator<S>, split_rows(tp) | partial(token_axes) > ::zeros(mesh, features, width);
    matmul_into(1, transpose(x), whole, 1, dw);
    EXPECT_TRUE(same_bits(parameters[0].gradient, dw.strided())) << "dW";
    auto db = Sharded<Accumulator<S>, partial(Residual.rows)>::zeros(mesh, 1, width);
    column_sums_into(dy, S(1), db);
    EXPECT_TRUE(same_bits(parameters[1].gradient, db.strided())) << "db";
}

template <class S, Placement Residual>
void expect_head_as_plain(const Mesh& mesh, const Sequences& sequences) {
    using Layer = VocabParallelHead<S, Residual, narrow>;
    Layer head(mesh, "head", features, width, normal);
    const auto parameter = head.parameters()[0];
    const auto table = value_of<S, split_rows(tp)>(mesh, parameter);
    const auto x = tokens<typename Layer::X>(mesh, sequences, width, 1);
    const auto dlogits = tokens<typename Layer::Logits>(mesh, sequences, features, 2);
    auto [logits, saved] = head.forward(x.clone());
    EXPECT_LT(head.audit(saved, logits, {.rows = 1000}).error, 1e-5);
    const auto dx = head.backward(std::move(saved), dlogits);

    const auto whole = travelled(x);
    expect_same(logits, matmul(whole, transpose(table)), "logits");
    expect_same(dx, redistribute<Residual>(matmul(dlogits, table)), "dx");
    auto de = Sharded < Accumulator<S>, split_rows(tp) | partial(token_axes) > ::zeros(mesh, features, width);
    matmul_into(1, transpose(dlogits), whole, 1, de);
    EXPECT_TRUE(same_bits(parameter.gradient, de.strided())) << "dE";
}

template <class S, Placement Residual>
void expect_embedding_as_plain(const Mesh& mesh, const Sequences& sequences) {
    const auto dy = tokens<Sharded<S, Residual>>(mesh, sequences, width, 2);
    const auto whole = travelled(dy);
    const Pass pass = {.sequences = sequences};
    const auto gradient_of = [&](auto&& embedding, const auto& gradient) {
        const Index rows = whole.strided().rows;
        const std::vector<std::int32_t> ids(std::size_t(rows), 3);
        embedding.backward(embedding.forward(ids, pass).saved, gradient);
        return embedding;
    };
    const auto got = gradient_of(VocabParallelEmbedding<S, Residual, narrow>(mesh, "e", 5, width, normal), dy);
    const auto want =
        gradient_of(VocabParallelEmbedding<S, residual_on_every_rank>(mesh, "e", 5, width, normal), whole);
    EXPECT_TRUE(same_bits(got.table()->view().gradient, want.table()->view().gradient)) << "dE";
}

template <class S, Placement Residual>
void expect_layers_as_plain(const Mesh& mesh, const Sequences& sequences) {
    expect_column_as_plain<S, Residual>(mesh, sequences);
    expect_row_as_plain<S, Residual>(mesh, sequences);
    expect_head_as_plain<S, Residual>(mesh, sequences);
    expect_embedding_as_plain<S, Residual>(mesh, sequences);
}

} // namespace

TEST(linear_wire, layers_have_the_bits_of_plain_products_of_what_travelled) {
    on_both_transports([](const Mesh& mesh, const Sequences& sequences) {
        expect_layers_as_plain<float, residual_on_every_rank>(mesh, sequences);
        expect_layers_as_plain<float, residual_over_tp>(mesh, sequences);
        expect_layers_as_plain<double, residual_over_tp>(mesh, sequences);
    });
}

namespace {

/// A column- and a row-parallel layer, forward and backward.
template <class S, WireType Wire>
Traffic sent_by_layers(const Mesh& mesh, const Sequences& sequences) {
    using Column = ColumnParallelLinear<S, residual_over_tp, Wire>;
    using Row = RowParallelLinear<S, residual_over_tp, Wire>;
    Column column(mesh, "column", width, features, normal);
    Row row(mesh, "row", features, width, normal);
    const Traffic before = mesh[tp].traffic();
    auto [hidden, saved_column] = column.forward(tokens<typename Column::X>(mesh, sequences, width, 1));
    auto [y, saved_row] = row.forward(std::move(hidden));
    const auto dhidden = row.backward(saved_row, tokens<typename Row::Y>(mesh, sequences, width, 2));
    (void)column.backward(std::move(saved_column), dhidden);
    return mesh[tp].traffic() - before;
}

/// x twice and dy once to every other rank, two bytes a number; the sums of y and dx, (T - T_r) numbers of the scalar.
template <class S>
void expect_bytes(const Mesh& mesh, const Sequences& sequences) {
    const Index others = mesh.size(tp) - 1, scalar = Index(sizeof(S));
    const Index mine = sequences.rows(mesh, tp).count(mesh.rank(tp)) * width, all = sequences.tokens() * width;
    const Index sums = others > 0 ? 2 * (all - mine) * scalar : 0;
    const Traffic got = sent_by_layers<S, narrow>(mesh, sequences);
    const Traffic wide = sent_by_layers<S, WireType::unchanged>(mesh, sequences);
    EXPECT_EQ(got.bytes, 3 * others * mine * 2 + sums);
    EXPECT_EQ(wide.bytes, 3 * others * mine * scalar + sums);
    EXPECT_EQ(got.messages, wide.messages);
}

} // namespace

TEST(linear_wire, tokens_travel_in_two_bytes_a_number_and_sums_in_their_own_type) {
    for (const int ranks : {1, 2, 3, 4})
        on_mesh({{tp, ranks}}, [](const Mesh& in_place) {
            const Mesh mesh(faulty(unchecked(in_place.world()), {}), in_place.axes());
            for (const Sequences& sequences : {many, few}) {
                expect_bytes<float>(mesh, sequences);
                expect_bytes<double>(mesh, sequences);
            }
        });
}

namespace {

/// sum |a| |b| of two matrices of one placement, each element once.
template <class X>
double magnitude(const X& a, const X& b) {
    X x = a.clone(), y = b.clone();
    x.local() = x.local().cwiseAbs().eval();
    y.local() = y.local().cwiseAbs().eval();
    return inner_product(x, y);
}

/// Fills a weight with waves, or with their magnitudes.
void set_waves(const ParameterView<double>& weight, bool magnitudes) {
    const Dense w = waves(5, weight.rows, weight.cols);
    set_value(weight, magnitudes ? Dense(w.cwiseAbs()) : w);
}

} // namespace

// The layer is x -> x W. What it computes forward and what it gives backward are adjoint but for the rounding of what
// travels: |<y, dy> - <x, dx>| <= 2^-8 <|x| |W|, |dy|>, and as far for W.
TEST(linear_wire, gradients_are_adjoint_within_what_is_documented) {
    on_layer_meshes([](const Mesh& in_place) {
        const Mesh mesh(faulty(in_place.world(), {}), in_place.axes());
        const auto expect = [&](auto layer, Index in, Index out, bool forward_rounds) {
            using Layer = decltype(layer);
            const auto weight = layer.parameters()[0];
            const auto x = tokens<typename Layer::X>(mesh, many, in, 1);
            const auto dy = tokens<typename Layer::Y>(mesh, many, out, 2);
            set_waves(weight, true);
            auto all_positive = x.clone();
            all_positive.local() = all_positive.local().cwiseAbs().eval();
            const double bound = unit * magnitude(layer.forward(std::move(all_positive)).y, dy) * (1 + unit);
            set_waves(weight, false);
            auto [y, saved] = layer.forward(x.clone());
            const auto dx = layer.backward(std::move(saved), dy);
            const auto parameters = layer.parameters();
            synchronise_gradients<double>(parameters);
            const auto w = [](Index i, Index j) { return wave(5, i, j); };
            const double from_y = inner_product(y, dy), from_x = inner_product(x, dx),
                         from_w = along(weight.spec(), weight.gradient, w);
            const double off_x = std::abs(from_y - from_x), off_w = std::abs(from_y - from_w);
            EXPECT_LE(off_x, bound);
            EXPECT_GT(off_x, 1e-9 * bound); // something was rounded
            if (forward_rounds)             // of one rounded x are y and dW
                EXPECT_LE(off_w, 1e-12 * bound / unit);
            else
                EXPECT_LE(off_w, bound);
        };
        expect(ColumnParallelLinear<double, residual_over_tp, narrow>(mesh, "column", width, features, normal, false),
               width, features, true);
        expect(RowParallelLinear<double, residual_over_tp, narrow>(mesh, "row", features, width, normal, false),
               features, width, false);
    });
}

TEST(linear_wire, ranks_that_choose_differently_are_told) {
    for (const Sequences& sequences : {many, few})
        on_world(3, [&](const Communicator& world) {
            const Mesh mesh(checked(faulty(unchecked(world), {})), {{tp, 3}});
            const auto forward = [&](const auto& layer) {
                (void)layer.forward(tokens<Sharded<float, residual_over_tp>>(mesh, sequences, width, 1));
            };
            try {
                if (world.rank() == 1)
                    forward(ColumnParallelLinear<float, residual_over_tp, narrow>(mesh, "c", width, features, normal));
                else
                    forward(ColumnParallelLinear<float, residual_over_tp>(mesh, "c", width, features, normal));
                ADD_FAILURE() << "no error";
            } catch (const DisagreementError& error) {
                const std::string words = error.what();
                EXPECT_NE(words.find("bfloat16"), std::string::npos) << words;
                EXPECT_NE(words.find("rank 1"), std::string::npos) << words;
            }
        });
}

} // namespace linear_wire_test
