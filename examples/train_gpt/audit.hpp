#pragma once

#include <train_gpt/training.hpp>

#include <iosfwd>

namespace train_gpt {

/// Audits the model at ten of the run's steps, and remembers whether all went well.
class AuditedRun {
  public:
    AuditedRun(const Options& options, std::ostream& out) : options_(options), out_(out) {}

    /// Prints the worst of the model's parts, where this step is one of the ten. Collective.
    void after(Index step, Training& training);

    bool passed() const { return passed_; }

  private:
    const Options& options_;
    std::ostream& out_;
    bool passed_ = true;
};

/// Throws where the loss is not a number any more, naming the tensors, ranks and elements that are not. Collective.
void require_finite(double loss, Index step, const Training& training);

} // namespace train_gpt
