#include "nn/support.hpp"

#include <reigen/comm/faulty.hpp>
#include <reigen/nn/block.hpp>
#include <reigen/nn/gradients.hpp>

namespace block_wire_test {

using namespace layer_cases;
using namespace reigen;

// A block whose tokens, keys and values travel as bfloat16: the same numbers on every mesh, since what travels is
// rounded on one rank too, and bytes that differ from those of the plain block by what travels narrow.

namespace {

constexpr Index width = 6;
const Sequences sequences{2, 20, SequenceLayout::zigzag};
const Pass pass = {.sequences = sequences, .training = true};
const BlockOptions options = {.attention = {width, {4, 2}, 2}, .hidden = 10};
const BlockInitial initial = {{.deviation = 0.3, .seed = 3}, {.deviation = 0.3, .seed = 4}};

/// Results of a forward and a backward pass, whole on every rank.
struct Passed {
    Dense y, dx;
    std::vector<ParameterView<double>> parameters;
    Traffic over_tp, over_cp;
};

template <Placement Residual, WireType Wire>
class Passing {
  public:
    explicit Passing(const Mesh& mesh) : block_(mesh, "block", options, RotaryPositions<double>(2), initial) {
        using Tokens = Sharded<double, Residual>;
        const Partition rows = sequences.rows(mesh, Residual.rows);
        const Traffic tp_before = mesh[tp].traffic(), cp_before = mesh[cp].traffic();
        auto [y, saved] = block_.forward(Tokens::from_global(mesh, rows, width, waves(1, 40, width)), pass);
        for (const auto& [name, report] : block_.audit(saved, {.rows = 40}))
            audits_ = std::max(audits_, report.error);
        const Tokens dx =
            block_.backward(std::move(saved), Tokens::from_global(mesh, rows, width, waves(2, 40, width)));
        passed_ = {to_dense(y), to_dense(dx), block_.parameters(), mesh[tp].traffic() - tp_before,
                   mesh[cp].traffic() - cp_before};
        synchronise_gradients<double>(passed_.parameters);
    }

    const Passed& operator*() const { return passed_; }
    double audits() const { return audits_; }

  private:
    TransformerBlock<double, Residual, Wire> block_;
    double audits_ = 0;
    Passed passed_;
};

double difference(const Dense& a, const Dense& b) {
    double largest = 0;
    for (Index i = 0; i < a.size(); ++i)
        largest = std::max(largest, std::abs(a.data()[i] - b.data()[i]));
    return largest;
}

template <Placement Residual>
void expect_numbers_of_one_rank(const Mesh& mesh) {
    const Passing<Residual, WireType::bf16> one((Mesh()));
    const Passing<Residual, WireType::bf16> here(mesh);
    EXPECT_LT(difference((*here).y, (*one).y), 1e-13);
    EXPECT_LT(difference((*here).dx, (*one).dx), 1e-12);
    EXPECT_LT(here.audits(), 1e-13);
    for (std::size_t p = 0; p < (*here).parameters.size(); ++p) {
        const auto& whole = (*one).parameters[p].gradient;
        Dense want(whole.rows, whole.cols);
        for (Index i = 0; i < whole.rows; ++i)
            for (Index j = 0; j < whole.cols; ++j)
                want(i, j) = whole(i, j);
        expect_gradient((*here).parameters[p], want, 1e-12);
    }
    const Passing<Residual, WireType::unchanged> plain((Mesh()));
    EXPECT_GT(difference((*one).y, (*plain).y), 1e-5); // something was rounded,
    EXPECT_GT(difference((*one).dx, (*plain).dx), 1e-5);
    EXPECT_LT(difference((*one).y, (*plain).y), 0.03); // and little
    EXPECT_LT(difference((*one).dx, (*plain).dx), 0.1);
}

} // namespace

TEST(block_wire, has_the_numbers_of_one_rank_on_every_mesh) {
    on_meshes({{{tp, 2}}, {{cp, 2}}, {{tp, 3}}, {{cp, 2}, {tp, 2}}, {{dp, 2}, {tp, 2}}}, [](const Mesh& mesh) {
        expect_numbers_of_one_rank<residual_on_every_rank>(mesh);
        expect_numbers_of_one_rank<residual_over_tp>(mesh);
        expect_numbers_of_one_rank<residual_over_tp>(Mesh(faulty(mesh.world(), {}), mesh.axes()));
    });
}

// Six gathers of tokens: x of q|k|v and of the MLP forward, the two dy backward and the two x again. Keys and values go
// round twice, to the other rank of cp.
TEST(block_wire, only_tokens_keys_and_values_travel_in_fewer_bytes) {
    on_mesh({{cp, 2}, {tp, 2}}, [](const Mesh& in_place) {
        const Mesh mesh(faulty(unchecked(in_place.world()), {}), in_place.axes());
        const Passing<residual_over_tp, WireType::unchanged> plain(mesh);
        const Passing<residual_over_tp, WireType::bf16> narrow(mesh);
        const Index saved_a_number = sizeof(double) - 2, audited = 1; // the audit gathers x of the MLP once more
        EXPECT_EQ((*plain).over_tp.bytes - (*narrow).over_tp.bytes, (6 + audited) * 10 * width * saved_a_number);
        EXPECT_EQ((*plain).over_cp.bytes - (*narrow).over_cp.bytes, 2 * 20 * (2 + 2) * saved_a_number);
    });
}

} // namespace block_wire_test
