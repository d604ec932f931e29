#pragma once

#include <reigen/comm/backend/backend.hpp>
#include <reigen/comm/backend/lines.hpp>
#include <reigen/comm/faulty/plan.hpp>

#include <chrono>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace reigen::inline REIGEN_INSTRUCTION_SET::detail {

/// A message that starts late and is reported late. What it sends is read late; what it receives comes to the caller's
/// memory, garbage from the start, at the very end.
class FaultyMessage final : public Message {
  public:
    using Start = std::function<std::unique_ptr<Message>(const Operation&)>;

    FaultyMessage(std::shared_ptr<FaultState> state, Lines& lines, const Operation& operation, Start start)
        : state_(std::move(state)),
          lines_(lines),
          operation_(operation),
          start_(std::move(start)),
          due_(Clock::now() +
               std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(state_->delay()))),
          late_(state_->late()) {
        if (is_kept_back())
            std::memset(operation_.out, 0xFF, std::size_t(bytes())); // a NaN in every floating-point type
        lines_.join(operation_, this);
    }

    ~FaultyMessage() override { leave_line(); }

    bool advance() override {
        if (state_->silent() || !has_started())
            return false;
        if (!arrived_) {
            if (!message_->advance())
                return false;
            arrived_ = true;
            leave_line();
        }
        if (late_-- > 0)
            return false;
        if (is_kept_back())
            std::memcpy(operation_.out, kept_back_.data(), kept_back_.size());
        return true;
    }

    bool revoke() noexcept override {
        leave_line();
        return arrived_ || !message_ || message_->revoke();
    }

    std::string waits_for() const override { return concat("rank ", operation_.peer, " in ", to_string(operation_)); }

    const std::byte* borrow() override { return message_->borrow(); }
    void give_back() noexcept override { message_->give_back(); }

  private:
    using Clock = std::chrono::steady_clock;

    bool is_kept_back() const {
        return operation_.call == Call::receive && !operation_.lend && operation_.out_size > 0;
    }
    Index bytes() const { return operation_.out_size * size_of(operation_.type); }

    bool has_started() {
        if (message_)
            return true;
        if (!in_line_ || Clock::now() < due_ || !lines_.is_first(operation_, this))
            return false;
        Operation started = operation_;
        if (is_kept_back()) {
            kept_back_.resize(std::size_t(bytes()));
            started.out = kept_back_.data();
        }
        message_ = start_(started);
        return true;
    }

    void leave_line() noexcept {
        if (std::exchange(in_line_, false))
            lines_.leave(this);
    }

    std::shared_ptr<FaultState> state_;
    Lines& lines_;
    Operation operation_;
    Start start_;
    Clock::time_point due_;
    int late_;
    std::vector<std::byte> kept_back_; // what has been received; the inner message, which writes it, goes first
    std::unique_ptr<Message> message_;
    bool in_line_ = true;
    bool arrived_ = false;
};

} // namespace reigen::inline REIGEN_INSTRUCTION_SET::detail
