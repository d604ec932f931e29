#pragma once

#include <reigen/attention/travelling_keys.hpp>
#include <reigen/core/buffer.hpp>
#include <reigen/kernel/bfloat16.hpp>

#include <type_traits>

namespace reigen::inline REIGEN_INSTRUCTION_SET {
namespace detail {

/// The sum of a rank's own gradients of keys or values, from the first hop to the last in the accumulator type: in the
/// caller's matrix where that has this type, else in memory of its own and rounded once.
template <class S>
class OwnGradients {
    using A = Accumulator<S>;
    static constexpr bool in_place = std::is_same_v<S, A>;

  public:
    explicit OwnGradients(HeadsView<S> result) : result_(result) {
        if constexpr (in_place) {
            sum_ = result;
        } else {
            const MemoryScope scope(MemoryUse::workspace);
            memory_ = Buffer<A>(result.size());
            sum_ = dense_heads(memory_.data(), result.batch, result.tokens, result.heads, result.head_dim);
        }
        zero_heads(sum_);
    }

    HeadsView<A> sum() const { return sum_; }

    /// The sum is complete.
    void finish() const {
        if constexpr (!in_place)
            for_each_vector(sum_, result_, [&](const A* from, S* to) { round_row(from, to, result_.head_dim); });
    }

  private:
    HeadsView<S> result_;
    Buffer<A> memory_;
    HeadsView<A> sum_;
};

} // namespace detail
} // namespace reigen::inline REIGEN_INSTRUCTION_SET
