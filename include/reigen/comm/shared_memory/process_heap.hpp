#pragma once

#include <reigen/comm/shared_memory/heap.hpp>

#include <unistd.h>

#include <algorithm>
#include <map>
#include <memory>
#include <mutex>

namespace reigen::inline REIGEN_INSTRUCTION_SET::detail {

/// The one heap of this process that its neighbours can read, and those of theirs that it has attached to.
class ProcessHeap {
  public:
    /// A heap, as others of the machine find it; of none, `bytes` is 0.
    struct Name {
        SegmentName segment;
        Index bytes = 0;
    };

    /// Made when first asked for, and from then on where the process's long Buffers lie. It stays: so may they.
    static ProcessHeap& of_this_process() {
        static ProcessHeap& heap = *new ProcessHeap;
        return heap;
    }

    /// Null where the system gave none.
    const SharedHeap* heap() const { return heap_.get(); }

    Name name() const {
        return heap_ ? Name{heap_->segment().name(), heap_->segment().size()}
                     : Name{{.process = std::int32_t(getpid())}, 0};
    }

    /// The heap of another process, once for all groups in which it is a neighbour; null where there is none.
    static std::shared_ptr<const Segment> attach(const Name& name) {
        static std::mutex& mutex = *new std::mutex;
        static auto& attached = *new std::map<std::uint64_t, std::weak_ptr<const Segment>>;
        if (name.bytes == 0)
            return nullptr;
        const std::lock_guard lock(mutex);
        auto& known = attached[name.segment.number];
        auto segment = known.lock();
        if (!segment) {
            try {
                segment = std::make_shared<const Segment>(Segment::attach_to_read(name.segment, name.bytes));
            } catch (const CommunicationError&) {
                return nullptr;
            }
            known = segment;
        }
        return segment;
    }

  private:
    ProcessHeap() {
        try {
            heap_ = std::make_unique<SharedHeap>(addresses());
            set_buffer_source(heap_.get());
        } catch (const CommunicationError&) {
            heap_ = nullptr; // Buffers stay where they are
        }
    }

    /// As many bytes as the machine has memory, but no more than 1 TiB: the heaps of all neighbours, up to a hundred,
    /// are to find room among the addresses of each.
    static Index addresses() {
        const Index memory = Index(sysconf(_SC_PHYS_PAGES)) * Index(sysconf(_SC_PAGESIZE));
        return std::min(memory, Index(1) << 40);
    }

    std::unique_ptr<SharedHeap> heap_;
};

} // namespace reigen::inline REIGEN_INSTRUCTION_SET::detail
