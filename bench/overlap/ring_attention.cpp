#include "overlap/work.hpp"

#include <reigen/attention/ring.hpp>
#include <reigen/layout/redistribute.hpp>

#include <cmath>
#include <numeric>
#include <utility>
#include <vector>

namespace overlap {
namespace {

using namespace reigen;

constexpr Placement over_ring = split_rows(cp);
using Tokens = Sharded<float, over_ring>;
using WholeTokens = Sharded<float, replicated>;
using SummedTokens = Sharded<float, partial(cp)>;

float token_number(Index i, Index j) {
    return std::sin(float(i) + 0.7F * float(j));
}

/// Ring attention of one sequence on a mesh, forward, and backward with the output as its own gradient.
template <WireType Wire>
class AttentionStep {
  public:
    AttentionStep(const Mesh& mesh, const AttentionSizes& sizes)
        : sequences_{1, sizes.length, SequenceLayout::zigzag},
          head_dim_(sizes.head_dim),
          q_(tokens(mesh, sizes)),
          k_(q_.clone()),
          v_(q_.clone()),
          dq_(q_.clone()),
          dk_(q_.clone()),
          dv_(q_.clone()) {}

    void run(bool backward) {
        const auto of = [&](auto& x) { return heads(x, sequences_, head_dim_); };
        const auto [out, lse] = ring_attention(of(q_), of(k_), of(v_), options_);
        if (backward)
            ring_attention_backward(of(q_), of(k_), of(v_), out, lse, out, of(dq_), of(dk_), of(dv_), options_);
    }

  private:
    Tokens tokens(const Mesh& mesh, const AttentionSizes& sizes) const {
        return Tokens::from_global(mesh, sequences_.rows(mesh, cp), sizes.heads * sizes.head_dim, token_number);
    }

    AttentionOptionsOn<Wire> options_ = {.mask = Mask::causal()};
    Sequences sequences_;
    Index head_dim_;
    Tokens q_, k_, v_, dq_, dk_, dv_;
};

/// The heads of some rows.
template <class X>
auto heads_of_rows(X& x, Index first, Index count, Index head_dim) {
    return dense_heads(x.data() + first * x.cols(), 1, count, x.cols() / head_dim, head_dim);
}

/// The same for this rank's queries with all keys and values here: block after block as they would come round.
class LocalAttention {
  public:
    LocalAttention(const Mesh& mesh, const AttentionSizes& sizes)
        : sizes_(sizes),
          sequences_{1, sizes.length, SequenceLayout::zigzag},
          mesh_(mesh),
          q_(Tokens::from_global(mesh, sequences_.rows(mesh, cp), sizes.heads * sizes.head_dim, token_number)),
          dq_(q_.clone()),
          k_(redistribute<replicated>(q_)),
          v_(k_.clone()) {}

    const Tokens& own() const { return q_; }
    const WholeTokens& k() const { return k_; }
    const WholeTokens& v() const { return v_; }

    /// dk and dv are sums over the ranks.
    void run(bool backward, const WholeTokens& k, const WholeTokens& v, SummedTokens& dk, SummedTokens& dv) {
        const auto rows = [&](auto& x, Index first, Index count) {
            return heads_of_rows(x, first, count, sizes_.head_dim);
        };
        AttentionState<float> state(rows(std::as_const(q_), 0, own_tokens()), positions(rank()), sizes_.heads,
                                    sizes_.head_dim, rule_, sizes_.length);
        for_each_block([&](int owner, Index first, Index count) {
            state.absorb(rows(k, first, count), rows(v, first, count), positions(owner));
        });
        Tokens out(q_.spec());
        Tokens lse(mesh_, q_.row_partition(), sizes_.heads);
        state.finish(rows(out, 0, own_tokens()), lse.strided());
        if (!backward)
            return;
        dk.local().setZero();
        dv.local().setZero();
        const AttentionOutputs<float> outputs = {rows(std::as_const(q_), 0, own_tokens()),
                                                 rows(std::as_const(out), 0, own_tokens()),
                                                 rows(std::as_const(out), 0, own_tokens()), lse.strided()};
        AttentionGradient<float> gradient(outputs, positions(rank()), sizes_.heads, rule_);
        for_each_block([&](int owner, Index first, Index count) {
            gradient.absorb(rows(k, first, count), rows(v, first, count), positions(owner), rows(dk, first, count),
                            rows(dv, first, count));
        });
        gradient.finish(rows(dq_, 0, own_tokens()));
    }

  private:
    int ranks() const { return mesh_.size(cp); }
    int rank() const { return mesh_.rank(cp); }
    Runs positions(int rank) const { return sequences_.positions(ranks(), rank); }
    Index own_tokens() const { return q_.spec().local_rows(); }

    /// work(owner, first row, rows) for every rank's keys, which lie rank after rank.
    template <class Work>
    void for_each_block(Work work) const {
        const std::vector<Index> counts = sequences_.positions_partition(ranks()).counts();
        for (int step = 0; step < ranks(); ++step) {
            const int owner = (rank() - step + ranks()) % ranks();
            work(owner, std::accumulate(counts.begin(), counts.begin() + owner, Index(0)), counts[std::size_t(owner)]);
        }
    }

    AttentionSizes sizes_;
    Sequences sequences_;
    ScoreRule rule_ = {.scale = 1 / std::sqrt(double(sizes_.head_dim)), .mask = Mask::causal()};
    Mesh mesh_;
    Tokens q_, dq_;
    WholeTokens k_, v_;
};

template <WireType Wire>
class AttentionWork final : public Work {
  public:
    AttentionWork(const Mesh& mesh, const AttentionSizes& sizes, bool backward)
        : backward_(backward),
          overlapped_(mesh, sizes),
          local_(mesh, sizes),
          whole_(Mesh(), sizes),
          dk_(mesh, local_.k().rows(), local_.k().cols()),
          dv_(dk_.clone()) {}

    void overlapped() override { overlapped_.run(backward_); }
    void computing() override { local_.run(backward_, local_.k(), local_.v(), dk_, dv_); }
    void whole() override { whole_.run(backward_); }

    /// Gathers keys and values, attends, and sums their gradients.
    void plain() override {
        const WholeTokens k = redistribute<replicated>(local_.own());
        const WholeTokens v = redistribute<replicated>(local_.own());
        local_.run(backward_, k, v, dk_, dv_);
        if (backward_) {
            redistribute<over_ring>(dk_);
            redistribute<over_ring>(dv_);
        }
    }

  private:
    bool backward_;
    AttentionStep<Wire> overlapped_;
    LocalAttention local_;
    AttentionStep<Wire> whole_;
    SummedTokens dk_, dv_;
};

template <WireType Wire>
Case attention_case(const AttentionSizes& sizes, int ranks, bool backward) {
    return case_over<AttentionWork<Wire>>(
        cp,
        concat("ring_attention/zigzag/cp:", ranks, "/N:", sizes.length, "/heads:", sizes.heads, "/d:", sizes.head_dim,
               Wire == WireType::unchanged ? "" : "/wire:bfloat16", backward ? "/forward_backward" : "/forward"),
        sizes, backward);
}

} // namespace

std::vector<Case> ring_attention_cases(const AttentionSizes& sizes, int ranks) {
    std::vector<Case> cases;
    for (const bool backward : {false, true})
        cases.push_back(attention_case<WireType::unchanged>(sizes, ranks, backward));
    for (const bool backward : {false, true})
        cases.push_back(attention_case<WireType::bf16>(sizes, ranks, backward));
    return cases;
}

} // namespace overlap
