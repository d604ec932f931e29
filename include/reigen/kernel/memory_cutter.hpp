#pragma once

#include <reigen/core/types.hpp>

namespace reigen::inline REIGEN_INSTRUCTION_SET {
namespace detail {

/// Cuts scratch memory into arrays; with a null pointer it only counts how much that takes.
template <class T>
class MemoryCutter {
  public:
    explicit MemoryCutter(T* memory) : memory_(memory) {}

    T* take(Index count) {
        used_ += count;
        return memory_ == nullptr ? nullptr : memory_ + used_ - count;
    }
    Index used() const { return used_; }

  private:
    T* memory_;
    Index used_ = 0;
};

} // namespace detail
} // namespace reigen::inline REIGEN_INSTRUCTION_SET
