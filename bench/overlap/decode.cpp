#include "overlap/work.hpp"

#include <reigen/kernel/activation.hpp>
#include <reigen/layout/redistribute.hpp>
#include <reigen/matmul/packed_shard.hpp>

#include <cmath>
#include <utility>

namespace overlap {
namespace {

using namespace reigen;

template <Placement Where>
PackedShard<float, Where> packed_numbers(const Mesh& mesh, Index rows, Index cols) {
    return PackedShard(Sharded<float, Where>::from_global(
        mesh, rows, cols, [](Index i, Index j) { return std::sin(float(i) + 0.7F * float(j)) / 64; }));
}

/// What one token of a decoder multiplies: the projections around attention, and two layers with GELU between them. Two
/// all-reduces of `hidden` numbers.
class DecodeStep {
  public:
    DecodeStep(const Mesh& mesh, Index hidden)
        : x_(Sharded<float, replicated>::from_global(mesh, 1, hidden,
                                                     [](Index, Index j) { return std::sin(float(j)); })),
          qkv_(packed_numbers<split_cols(tp)>(mesh, hidden, 3 * hidden)),
          out_(packed_numbers<split_rows(tp)>(mesh, hidden, hidden)),
          up_(packed_numbers<split_cols(tp)>(mesh, hidden, 4 * hidden)),
          down_(packed_numbers<split_rows(tp)>(mesh, 4 * hidden, hidden)) {}

    /// `summed(partial sum)` gives it on every rank.
    template <class Summed>
    void run(Summed summed) {
        const auto qkv = matmul(x_, qkv_);
        Sharded<float, split_cols(tp)> values(x_.mesh(), 1, out_.row_partition());
        std::copy_n(qkv.data(), values.local().size(), values.data()); // as attention to this token alone would
        const Sharded<float, replicated> y = summed(matmul(values, out_));
        auto inner = matmul(y, up_);
        gelu(inner.data(), inner.data(), inner.strided().size());
        result_ = summed(matmul(inner, down_));
    }

    void run() {
        run([](auto&& partial) { return sum(std::move(partial)); });
    }

    /// Without a message: this rank's summand stands for the sum.
    void run_alone() {
        run([](auto&& partial) {
            const Mesh mesh = partial.mesh();
            const Index columns = partial.cols();
            return Sharded<float, replicated>(ShardSpec(mesh, replicated, 1, columns), std::move(partial).release());
        });
    }

  private:
    Sharded<float, replicated> x_;
    PackedShard<float, split_cols(tp)> qkv_;
    PackedShard<float, split_rows(tp)> out_;
    PackedShard<float, split_cols(tp)> up_;
    PackedShard<float, split_rows(tp)> down_;
    Sharded<float, replicated> result_;
};

/// Nothing can hide what one token's products wait for: overlapped and plain are the same.
class DecodeWork final : public Work {
  public:
    DecodeWork(const Mesh& mesh, Index hidden) : step_(mesh, hidden), whole_(Mesh(), hidden) {}

    void overlapped() override { step_.run(); }
    void plain() override { step_.run(); }
    void computing() override { step_.run_alone(); }
    void whole() override { whole_.run(); }

  private:
    DecodeStep step_, whole_;
};

} // namespace

std::vector<Case> decode_cases(Index hidden, int ranks) {
    return {case_over<DecodeWork>(tp, concat("decode/tp:", ranks, "/tokens:1/hidden:", hidden), hidden)};
}

} // namespace overlap
