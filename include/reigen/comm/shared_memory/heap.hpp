#pragma once

#include <reigen/comm/shared_memory/segment.hpp>
#include <reigen/core/buffer_source.hpp>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <map>
#include <memory>
#include <mutex>
#include <new>
#include <span>
#include <utility>

namespace reigen::inline REIGEN_INSTRUCTION_SET::detail {

/// Memory for the long `Buffer`s of this process that others of its machine can read where it lies.
///
/// A segment as long as the process may ever want, of which only what was used takes memory; what is given back is kept
/// for the next. The first block that fits best is taken.
class SharedHeap final : public BufferSource {
  public:
    explicit SharedHeap(Index bytes) : segment_(Segment::reserve(bytes)) { free_.emplace(0, bytes); }

    const Segment& segment() const { return segment_; }

    /// Whether `bytes` from here on lie in this heap.
    bool holds(const std::byte* memory, Index bytes) const {
        return memory >= segment_.data() && memory + bytes <= segment_.data() + segment_.size();
    }

    void* take(std::size_t wanted) noexcept override {
        const Index bytes = rounded(wanted);
        const std::lock_guard lock(mutex_);
        auto best = free_.end();
        for (auto block = free_.begin(); block != free_.end(); ++block)
            if (block->second >= bytes && (best == free_.end() || block->second < best->second))
                best = block;
        if (best == free_.end())
            return nullptr;
        const auto [first, size] = *best;
        try {
            if (size > bytes)
                free_.emplace(first + bytes, size - bytes);
        } catch (const std::bad_alloc&) {
            return nullptr;
        }
        free_.erase(best);
        reach_.store(std::max(reach_.load(), first + bytes));
        return segment_.data() + first;
    }

    bool give_back(void* memory, std::size_t size) noexcept override {
        const auto* const bytes = static_cast<const std::byte*>(memory);
        if (!holds(bytes, 1))
            return false;
        const std::lock_guard lock(mutex_);
        Index first = bytes - segment_.data();
        Index count = rounded(size);
        const auto next = free_.lower_bound(first);
        if (next != free_.end() && next->first == first + count) {
            count += next->second;
            free_.erase(next);
        }
        const auto behind = free_.lower_bound(first);
        if (behind != free_.begin() && std::prev(behind)->first + std::prev(behind)->second == first)
            std::prev(behind)->second += count;
        else
            insert(first, count);
        return true;
    }

    std::span<const std::byte> given() const noexcept override { return {segment_.data(), std::size_t(reach_.load())}; }

  private:
    /// By pages, so that what was given back can be given again with little left over.
    static Index rounded(std::size_t bytes) { return Index((bytes + 4095) / 4096 * 4096); }

    /// A block that cannot be noted is lost.
    void insert(Index first, Index count) noexcept {
        try {
            free_.emplace(first, count);
        } catch (const std::bad_alloc&) {
            lost_ += count;
        }
    }

    Segment segment_;
    std::mutex mutex_;
    std::atomic<Index> reach_ = 0; // bytes up to the end of the last block that was ever taken
    Index lost_ = 0;               // bytes
    std::map<Index, Index> free_;  // bytes of each free block, by where it starts
};

} // namespace reigen::inline REIGEN_INSTRUCTION_SET::detail
