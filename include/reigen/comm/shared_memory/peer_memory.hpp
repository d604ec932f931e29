#pragma once

#include <reigen/comm/backend/shared_address.hpp>
#include <reigen/comm/shared_memory/heap.hpp>
#include <reigen/comm/shared_memory/segment.hpp>

#include <sys/uio.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <utility>
#include <vector>

namespace reigen::inline REIGEN_INSTRUCTION_SET::detail {

/// What a rank can read of the memory of the other processes of its group: their heaps in place, and whatever else they
/// have by a copy of the system's, where that allows it.
class PeerMemory {
  public:
    /// None.
    PeerMemory() = default;

    /// Of each rank: its heap, null for this rank's own, and its process; no processes where the system does not copy.
    PeerMemory(const SharedHeap* own, std::vector<std::shared_ptr<const Segment>> heaps, std::vector<pid_t> processes)
        : own_(own), heaps_(std::move(heaps)), processes_(std::move(processes)) {}

    bool any() const { return in_place() || copies(); }

    /// Whether heaps can be read in place.
    bool in_place() const { return own_ != nullptr; }

    SharedAddress address_of(const std::byte* memory, Index bytes) const {
        SharedAddress result{std::uint64_t(reinterpret_cast<std::uintptr_t>(memory)), 0};
        if (own_ != nullptr && own_->holds(memory, bytes))
            result.behind_start = 1 + std::uint64_t(memory - own_->segment().data());
        return result;
    }

    /// Whether the system copies what lies elsewhere.
    bool copies() const { return !processes_.empty(); }

    /// Where this rank sees memory of another one's heap.
    const std::byte* at(int rank, SharedAddress memory) const {
        return heaps_[std::size_t(rank)]->data() + (memory.behind_start - 1);
    }

    /// Copies `bytes` of a rank's memory, `offset` bytes behind where it starts. Memory that the rank has given back
    /// meanwhile gives an error or something else, never a crash.
    ///
    /// Throws  CommunicationError with the system's words
    void read(int rank, SharedAddress memory, Index offset, std::byte* to, Index bytes) const {
        if (memory.in_place()) {
            std::memcpy(to, at(rank, memory) + offset, std::size_t(bytes));
            return;
        }
        for (Index done = 0; done < bytes;) {
            const std::uint64_t from = memory.address + std::uint64_t(offset + done);
            // NOLINTNEXTLINE(performance-no-int-to-ptr): an address of another process
            const iovec remote{reinterpret_cast<void*>(from), std::size_t(bytes - done)};
            const iovec local{to + done, std::size_t(bytes - done)};
            const ssize_t got = process_vm_readv(processes_[std::size_t(rank)], &local, 1, &remote, 1, 0);
            if (got <= 0)
                throw CommunicationError(
                    concat("reading ", bytes, " bytes of rank ", rank, ": ", std::strerror(errno)));
            done += got;
        }
    }

  private:
    const SharedHeap* own_ = nullptr;
    std::vector<std::shared_ptr<const Segment>> heaps_;
    std::vector<pid_t> processes_;
};

} // namespace reigen::inline REIGEN_INSTRUCTION_SET::detail
