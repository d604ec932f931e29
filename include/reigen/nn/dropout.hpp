#pragma once

#include <reigen/kernel/dropout.hpp>
#include <reigen/nn/parameter.hpp>
#include <reigen/nn/pass.hpp>

#include <cstdint>
#include <string_view>

namespace reigen::inline REIGEN_INSTRUCTION_SET {

/// Zeroes elements with a probability and scales the others so that the mean stays. Which ones is a function of seed,
/// step, micro-batch, the dropout's name and the global index, so every mesh drops the same and nothing is saved.
///
/// Shapes      x: whole rows of any rows-only placement, in place
/// Collective  no
class Dropout {
  public:
    Dropout(std::string_view name, double probability, std::uint64_t seed)
        : probability_(probability), seed_(seed), number_(tensor_number(name)) {
        require(probability >= 0 && probability < 1, name, ": probability ", probability, ", want it in [0, 1)");
    }

    /// Whether it changes anything in this pass.
    bool acts(const Pass& pass) const { return pass.training && probability_ > 0; }

    /// Forward; and, since what is dropped does not depend on x, the same applied to dy is the backward pass.
    template <class S, Placement Where>
    void apply(Sharded<S, Where>& x, const Pass& pass) const {
        static_assert(Where.cols == Axes::none && !is_partial(Where),
                      "reigen: dropout works on whole rows; redistribute columns or partial sums first");
        if (!acts(pass))
            return;
        const RandomStream stream(seed_, pass.step, pass.micro_batch, number_);
        dropout<S>(x.strided(), x.row_runs(), DropoutPattern(probability_, x.cols(), stream));
    }

  private:
    double probability_;
    std::uint64_t seed_;
    std::uint64_t number_;
};

} // namespace reigen::inline REIGEN_INSTRUCTION_SET
