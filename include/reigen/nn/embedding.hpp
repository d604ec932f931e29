#pragma once

#include <reigen/layout/redistribute.hpp>
#include <reigen/nn/linear.hpp>
#include <reigen/nn/pass.hpp>

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace reigen::inline REIGEN_INSTRUCTION_SET {

/// One row a token of the vocabulary, the rows split over tp. Embedding and head may share one.
template <class S>
using VocabularyTable = Parameter<S, split_rows(tp), token_axes>;

/// y_i = E[id_i]: each rank looks up what it holds, a sum over tp puts the rows together.
///
/// Shapes      ids: one for each token of dp|cp; E [vocabulary, width] {tp; ; }; y [tokens, width] {Residual}
/// Cost        an all-reduce of y; where the residual stream is split over tp a reduce-scatter, and an all-gather of dy
///             backwards; an all-reduce of two numbers over dp|cp
/// Wire        tokens of dy on their way, where the stream is split: dE is that of dy rounded to it
/// Collective  over the mesh
/// Throws      ArgumentError on every rank where any rank has an id outside the vocabulary, ShapeError where any has
///             another number of ids than of tokens
template <class S, Placement Residual, WireType Wire = WireType::unchanged>
class VocabParallelEmbedding {
    static_assert(checked_residual<Residual>);

  public:
    using Y = Sharded<S, Residual>;

    struct Saved {
        std::vector<std::int32_t> ids;
    };

    VocabParallelEmbedding(const Mesh& mesh, const std::string& name, Index vocabulary, Index width,
                           const Initial& initial)
        : table_(std::make_shared<VocabularyTable<S>>(mesh, name + ".weight", vocabulary, width, initial)) {}

    /// To share with a head.
    const std::shared_ptr<VocabularyTable<S>>& table() const { return table_; }

    Forward<Y, Saved> forward(std::span<const std::int32_t> ids, const Pass& pass) const {
        const auto& table = table_->value();
        const Mesh& mesh = table.mesh();
        const Partition rows = pass.sequences.rows(mesh, token_axes);
        require_ids(ids, rows.count(mesh.rank(token_axes)));
        Sharded<S, lookup(residual_on_every_rank, split_rows(tp))> found(mesh, rows, table.cols());
        for (Index i = 0; i < Index(ids.size()); ++i)
            if (const auto row = table.row_runs().find(ids[std::size_t(i)]))
                found.local().row(i) = table.local().row(*row).template cast<Accumulator<S>>();
            else
                found.local().row(i).setZero();
        return {redistribute<Residual>(std::move(found)), Saved{{ids.begin(), ids.end()}}};
    }

    void backward(Saved saved, const Y& dy) {
        auto& gradient = table_->gradient();
        const ShardSpec& spec = dy.spec();
        detail::require_same_mesh(spec, gradient.spec(), table_->name().c_str());
        const Partition tokens = rearranged(spec.row_partition, spec.mesh, Residual.rows, token_axes);
        const Index mine = tokens.count(spec.mesh.rank(token_axes));
        require<ShapeError>(dy.cols() == gradient.cols() && mine == Index(saved.ids.size()), table_->name(), ": dy is ",
                            shape(dy.rows(), dy.cols()), ", ", mine, " rows of it on this rank; it looked up ",
                            saved.ids.size(), " rows of ", gradient.cols());
        decltype(auto) whole = gathered<Wire>(dy);
        for (Index i = 0; i < Index(saved.ids.size()); ++i)
            if (const auto row = gradient.row_runs().find(saved.ids[std::size_t(i)]))
                gradient.local().row(*row) += whole.local().row(i).template cast<Accumulator<S>>();
    }

    std::vector<ParameterView<S>> parameters() { return {table_->view()}; }

  private:
    /// Every rank of the tokens learns what any of them brings wrong, and throws, before any other message.
    void require_ids(std::span<const std::int32_t> ids, Index rows) const {
        const auto& table = table_->value();
        std::array<std::int64_t, 2> wrong = {0, Index(ids.size()) != rows};
        for (const std::int32_t id : ids)
            wrong[0] += id < 0 || id >= table.rows();
        table.mesh()[token_axes].all_reduce(wrong);
        require<ShapeError>(Index(ids.size()) == rows, table_->name(), ": ", ids.size(), " ids for ", rows, " tokens");
        require<ShapeError>(wrong[1] == 0, table_->name(), ": the number of ids is not that of tokens on ", wrong[1],
                            " other ranks");
        require(wrong[0] == 0, table_->name(), ": ", wrong[0], " ids of the batch are not in [0, ", table.rows(), ')');
    }

    std::shared_ptr<VocabularyTable<S>> table_;
};

/// logits = x E^T, the classes split over tp.
///
/// Shapes      x [tokens, width] {Residual}; E [vocabulary, width] {tp; ; }; logits [tokens, vocabulary] {dp|cp; tp; }
/// Cost, Wire  as ColumnParallelLinear
/// Collective  over tp
template <class S, Placement Residual, WireType Wire = WireType::unchanged>
class VocabParallelHead {
    static_assert(checked_residual<Residual>);
    static constexpr WireType wire = detail::tokens_wire<Residual, Wire>;

  public:
    using X = Sharded<S, Residual>;
    using Logits = Sharded<S, features_over_tp>;

    struct Saved {
        X x;
    };

    /// A table of its own.
    VocabParallelHead(const Mesh& mesh, const std::string& name, Index vocabulary, Index width, const Initial& initial)
        : table_(std::make_shared<VocabularyTable<S>>(mesh, name + ".weight", vocabulary, width, initial)) {}

    /// Tied: one storage, and one gradient to which both uses add.
    explicit VocabParallelHead(std::shared_ptr<VocabularyTable<S>> table) : table_(std::move(table)) {
        require(table_ != nullptr, "VocabParallelHead: no table");
    }

    Forward<Logits, Saved> forward(X x) const {
        detail::require_factors(x.spec(), transpose(table_->value().spec()), table_->name().c_str());
        Logits logits = all_gather_matmul<residual_on_every_rank, wire>(x, transpose(table_->value()));
        return {std::move(logits), Saved{std::move(x)}};
    }

    AuditReport audit(const Saved& saved, const Logits& logits, const AuditOptions& options) const {
        return audit_product(gathered<wire>(saved.x), transpose(table_->value()), logits, options);
    }

    X backward(Saved saved, const Logits& dlogits) {
        detail::require_same_tokens(saved.x.spec(), dlogits.spec(), table_->name());
        detail::require_factors(dlogits.spec(), table_->value().spec(), table_->name().c_str());
        auto x = start_redistribute<residual_on_every_rank, wire>(std::move(saved.x));
        auto dx = start_redistribute<Residual>(matmul(dlogits, table_->value()));
        matmul_into(S(1), transpose(dlogits), x.wait(), S(1), table_->gradient());
        return dx.wait();
    }

    /// The table, also where an embedding lists it too.
    std::vector<ParameterView<S>> parameters() { return {table_->view()}; }

  private:
    std::shared_ptr<VocabularyTable<S>> table_;
};

} // namespace reigen::inline REIGEN_INSTRUCTION_SET
