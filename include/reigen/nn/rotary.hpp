#pragma once

#include <reigen/kernel/rotary.hpp>

#include <memory>

namespace reigen::inline REIGEN_INSTRUCTION_SET {

/// Rotary tables of the positions that layers ask for: keeps the last one, since all layers of a pass, and all passes
/// of a training, ask for the same. Copies share it; a handle belongs to one rank.
template <class S>
class RotaryPositions {
  public:
    explicit RotaryPositions(Index head_dim, double base = 10000)
        : head_dim_(head_dim), base_(base), last_(std::make_shared<Last>()) {
        detail::half_of_head(head_dim, base);
    }

    Index head_dim() const { return head_dim_; }

    std::shared_ptr<const RotaryTable<S>> at(const Runs& positions) const {
        if (!last_->table || !(last_->positions == positions)) {
            const MemoryScope scope(MemoryUse::workspace);
            *last_ = {positions, std::make_shared<const RotaryTable<S>>(positions, head_dim_, base_)};
        }
        return last_->table;
    }

  private:
    struct Last {
        Runs positions;
        std::shared_ptr<const RotaryTable<S>> table;
    };

    Index head_dim_;
    double base_;
    std::shared_ptr<Last> last_;
};

} // namespace reigen::inline REIGEN_INSTRUCTION_SET
