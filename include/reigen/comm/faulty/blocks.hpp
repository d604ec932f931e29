#pragma once

#include <reigen/comm/backend/backend.hpp>

#include <algorithm>
#include <deque>
#include <memory>
#include <string>

namespace reigen::inline REIGEN_INSTRUCTION_SET::detail {

/// A message that travels as several of at most so many elements, a few at a time. Both sides cut alike; an empty one
/// is one block.
class MessageInBlocks final : public Message {
  public:
    MessageInBlocks(Backend& backend, const Operation& operation, Index block)
        : backend_(backend),
          operation_(operation),
          block_(block),
          size_(std::max(operation.in_size, operation.out_size)) {
        start_blocks();
    }

    bool advance() override {
        for (Block& block : blocks_)
            block.complete = block.complete || block.message->advance();
        while (!blocks_.empty() && blocks_.front().complete)
            blocks_.pop_front();
        start_blocks();
        return blocks_.empty();
    }

    bool revoke() noexcept override {
        bool all = true;
        for (const Block& block : blocks_)
            all = (block.complete || block.message->revoke()) && all;
        return all;
    }

    std::string waits_for() const override { return concat("rank ", operation_.peer, " in ", to_string(operation_)); }

  private:
    struct Block {
        std::unique_ptr<Message> message;
        bool complete = false;
    };

    void start_blocks() {
        constexpr std::size_t at_once = 16;
        while (blocks_.size() < at_once && (next_ < size_ || next_ == 0)) {
            blocks_.push_back({backend_.start_message(part(next_, std::min(block_, size_ - next_)))});
            next_ += block_;
        }
    }

    Operation part(Index first, Index count) const {
        Operation result = operation_;
        const Index offset = first * size_of(operation_.type);
        if (operation_.call == Call::send) {
            result.in = count > 0 ? operation_.in + offset : nullptr;
            result.in_size = count;
        } else {
            result.out = count > 0 ? operation_.out + offset : nullptr;
            result.out_size = count;
        }
        return result;
    }

    Backend& backend_;
    Operation operation_;
    Index block_;
    Index size_;
    Index next_ = 0;           // the first element of the block to be started next
    std::deque<Block> blocks_; // those on their way
};

} // namespace reigen::inline REIGEN_INSTRUCTION_SET::detail
