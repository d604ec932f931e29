#pragma once

#include <reigen/comm/backend/operation.hpp>

#include <algorithm>
#include <vector>

namespace reigen::inline REIGEN_INSTRUCTION_SET::detail {

/// Messages of one rank that are not on their way yet, in the order in which they were started. Those of one direction,
/// peer and tag form a line: its first one goes next.
class Lines {
  public:
    void join(const Operation& operation, const void* message) {
        waiting_.push_back({operation.call, operation.peer, operation.tag, message});
    }

    bool is_first(const Operation& operation, const void* message) const {
        const auto first = std::ranges::find_if(waiting_, [&](const Entry& entry) {
            return entry.call == operation.call && entry.peer == operation.peer && entry.tag == operation.tag;
        });
        return first != waiting_.end() && first->message == message;
    }

    void leave(const void* message) noexcept {
        std::erase_if(waiting_, [&](const Entry& entry) { return entry.message == message; });
    }

  private:
    struct Entry {
        Call call;
        int peer;
        int tag;
        const void* message;
    };

    std::vector<Entry> waiting_;
};

} // namespace reigen::inline REIGEN_INSTRUCTION_SET::detail
