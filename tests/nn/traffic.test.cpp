#include "nn/support.hpp"

#include <reigen/nn/block.hpp>
#include <reigen/nn/cross_entropy.hpp>
#include <reigen/nn/embedding.hpp>

#include <span>

// What each layer sends, forward and backward, against closed forms: messages and bytes, on every rank.

namespace layer_traffic_test {

using namespace layer_cases;
using namespace reigen;

namespace {

const Initial normal = {.deviation = 1, .seed = 3};

/// By collectives of a number of elements that a group of ranks has in parts.
class Sends {
  public:
    Sends(const Communicator& ranks, Index element_bytes)
        : size_(ranks.size()), rank_(ranks.rank()), element_bytes_(element_bytes) {}

    /// By halves, or thirds, or fourths; short vectors of two ranks whole.
    Traffic all_reduce(Index count) const {
        if (size_ == 1 || count == 0)
            return {};
        if (size_ == 2 && count * element_bytes_ <= 4096)
            return {1, count * element_bytes_};
        std::vector<Index> parts;
        for (int r = 0; r < size_; ++r)
            parts.push_back(count / size_ + (r < count % size_ ? 1 : 0));
        return reduce_scatter(parts) + all_gather(parts);
    }

    Traffic reduce_scatter(const std::vector<Index>& parts) const {
        Traffic sent;
        for (int r = 0; r < size_; ++r)
            if (r != rank_ && parts[std::size_t(r)] > 0)
                sent = sent + Traffic{1, parts[std::size_t(r)] * element_bytes_};
        return sent;
    }

    Traffic all_gather(const std::vector<Index>& parts) const {
        const Index mine = parts[std::size_t(rank_)];
        return mine > 0 ? Traffic{size_ - 1, (size_ - 1) * mine * element_bytes_} : Traffic();
    }

  private:
    int size_;
    int rank_;
    Index element_bytes_;
};

/// Tokens of the residual stream on one mesh, and what moving them within tp sends.
template <class S, Placement Residual>
struct Stream {
    const Mesh& mesh;
    Sequences sequences;
    Sends sends{mesh[tp], sizeof(S)};
    static constexpr bool is_split = Residual == residual_over_tp;

    Partition rows(Axes axes) const { return sequences.rows(mesh, axes); }
    Index tokens() const { return rows(token_axes).count(mesh.rank(token_axes)); } // on all ranks of tp together

    /// `width` numbers of each token from all ranks of tp onto all.
    Traffic gathered(Index width) const { return is_split ? sends.all_gather(parts(width)) : Traffic(); }

    /// Sums over tp of so many.
    Traffic summed(Index width) const {
        return is_split ? sends.reduce_scatter(parts(width)) : sends.all_reduce(tokens() * width);
    }

    template <class X = Sharded<S, Residual>>
    X some(const Extent& features) const {
        return X::from_global(mesh, rows(X::placement.rows), features, [](Index i, Index j) { return wave(1, i, j); });
    }

  private:
    std::vector<Index> parts(Index width) const {
        std::vector<Index> sizes;
        for (int r = 0; r < mesh.size(tp); ++r)
            sizes.push_back(width * rows(Residual.rows).count(mesh.rank(token_axes) * mesh.size(tp) + r));
        return sizes;
    }
};

template <class Call>
void expect_sent(const Traffic& want, const char* what, Call call) {
    const Traffic before = traffic_of_rank();
    call();
    const Traffic sent = traffic_of_rank() - before;
    EXPECT_EQ(sent.messages, want.messages) << what;
    EXPECT_EQ(sent.bytes, want.bytes) << what;
}

/// Calls body(Stream) for float and double, both residual streams, uneven and few tokens, with `tp` innermost.
template <class Body>
void on_streams(const std::vector<std::vector<MeshAxis>>& meshes, const Body& body) {
    on_meshes(meshes, [&](const Mesh& mesh) {
        for (const Index length : {1, 5, 150}) {
            const Sequences sequences{2, length, SequenceLayout::contiguous};
            SCOPED_TRACE("length " + std::to_string(length));
            body(Stream<double, residual_on_every_rank>{mesh, sequences});
            body(Stream<double, residual_over_tp>{mesh, sequences});
            body(Stream<float, residual_on_every_rank>{mesh, sequences});
            body(Stream<float, residual_over_tp>{mesh, sequences});
        }
    });
}

const std::vector<std::vector<MeshAxis>> layer_meshes = {{},        {{tp, 2}},          {{tp, 3}},
                                                         {{tp, 4}}, {{dp, 2}, {tp, 2}}, {{cp, 2}, {tp, 2}}};
const std::vector<std::vector<MeshAxis>> meshes_without_cp = {{}, {{tp, 2}}, {{tp, 3}}, {{tp, 4}}, {{dp, 2}, {tp, 2}}};

constexpr Index width = 6, hidden = 9;

template <class S, Placement Residual>
void expect_linear(const Stream<S, Residual>& stream) {
    ColumnParallelLinear<S, Residual> column(stream.mesh, "column", width, hidden, normal);
    RowParallelLinear<S, Residual> row(stream.mesh, "row", hidden, width, normal);
    auto x = stream.some(width);
    const auto dy = stream.some(width);
    auto h = column.forward(x.clone());
    auto y = row.forward(h.y.clone());
    const auto dh = h.y.clone();
    expect_sent(stream.gathered(width), "column forward", [&] { column.forward(std::move(x)); });
    expect_sent(stream.summed(width), "row forward", [&] { row.forward(std::move(h.y)); });
    expect_sent(stream.gathered(width), "row backward", [&] { row.backward(y.saved, dy); });
    expect_sent(stream.summed(width) + stream.gathered(width), "column backward",
                [&] { column.backward(std::move(h.saved), dh); });
}

TEST(layer_traffic, of_linear_layers) {
    on_streams(layer_meshes, [](const auto& stream) { expect_linear(stream); });
}

template <class S, Placement Residual>
void expect_embedding_and_loss(const Stream<S, Residual>& stream) {
    constexpr Index vocabulary = 7;
    const Pass pass = {.sequences = stream.sequences};
    const std::vector<std::int32_t> ids(std::size_t(stream.tokens()), 3);
    const Sends of_numbers(stream.mesh[token_axes], 8), of_doubles(stream.mesh[tp], 8);
    VocabParallelEmbedding<S, Residual> embedding(stream.mesh, "embedding", vocabulary, width, normal);
    VocabParallelHead<S, Residual> head(stream.mesh, "head", vocabulary, width, normal);
    const VocabParallelCrossEntropy<S> loss;
    auto dy = stream.some(width);
    auto found = embedding.forward(ids, pass);
    auto logits = head.forward(dy.clone());
    auto mean = loss.forward(logits.y.clone(), ids);
    expect_sent(of_numbers.all_reduce(2) + stream.summed(width), "embedding forward",
                [&] { embedding.forward(ids, pass); });
    expect_sent(stream.gathered(width), "embedding backward", [&] { embedding.backward(std::move(found.saved), dy); });
    expect_sent(stream.gathered(width), "head forward", [&] { head.forward(std::move(dy)); });
    expect_sent(of_numbers.all_reduce(3) + of_doubles.all_reduce(stream.tokens()) +
                    of_doubles.all_reduce(3 * stream.tokens()) + of_numbers.all_reduce(1),
                "loss forward", [&] { loss.forward(logits.y.clone(), ids); });
    expect_sent({}, "loss backward", [&] { loss.backward(std::move(mean.saved)); });
    expect_sent(stream.summed(width) + stream.gathered(width), "head backward",
                [&] { head.backward(std::move(logits.saved), logits.y); });
}

TEST(layer_traffic, of_embedding_head_and_loss) {
    on_streams(layer_meshes, [](const auto& stream) { expect_embedding_and_loss(stream); });
}

/// Norm, dropout and residual send nothing; what the MLP and the attention send is that of their linear layers, where
/// the sequence is not split.
template <class S, Placement Residual>
void expect_block(const Stream<S, Residual>& stream) {
    const Pass pass = {.sequences = stream.sequences, .training = true};
    constexpr Index head_dim = 8, heads = 4;
    const BlockOptions options = {.attention = {width, {heads, 2}, head_dim}, .hidden = hidden, .dropout = 0.5};
    TransformerBlock<S, Residual> block(stream.mesh, "block", options, RotaryPositions<S>(head_dim), {normal, normal});
    auto x = stream.some(width);
    auto dy = stream.some(width);
    auto kept = block.forward(x.clone(), pass);
    const Traffic forward = stream.gathered(width) + stream.summed(width);
    const Traffic of_two = forward + forward;
    const Traffic again = stream.gathered(width) + stream.gathered(width); // what was not kept of two layers' inputs
    expect_sent(of_two, "block forward", [&] { block.forward(std::move(x), pass); });
    expect_sent(of_two + again, "block backward", [&] { block.backward(std::move(kept.saved), std::move(dy)); });
}

TEST(layer_traffic, of_a_transformer_block) {
    on_streams(meshes_without_cp, [](const auto& stream) { expect_block(stream); });
}

} // namespace
} // namespace layer_traffic_test
