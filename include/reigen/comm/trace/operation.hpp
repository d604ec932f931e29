#pragma once

#include <reigen/comm/backend/backend.hpp>
#include <reigen/comm/trace/recorder.hpp>

#include <concepts>
#include <cstddef>
#include <memory>
#include <string>
#include <utility>

namespace reigen::inline REIGEN_INSTRUCTION_SET::detail {

/// The event of one operation, from its start to its end, however it ends.
class TracedEvent {
  public:
    TracedEvent(std::shared_ptr<TraceRecorder> recorder, TraceEvent event)
        : recorder_(std::move(recorder)), row_(event.row), event_(recorder_->add(event)) {}
    ~TracedEvent() { end(true); }
    TracedEvent(const TracedEvent&) = delete;
    TracedEvent& operator=(const TracedEvent&) = delete;

    /// What `call` gives; what is sent while it runs belongs to this event.
    template <class Call>
    auto during(Call call) {
        struct Current {
            TraceRecorder& recorder;
            TraceRecorder::Current before;
            ~Current() { recorder.exchange_current(before); }
        };
        const Current current{*recorder_, recorder_->exchange_current({event_, row_})};
        return call();
    }

    /// Calls `advance`, and notes when it is complete.
    template <class Advance>
    bool watch(Advance advance) {
        bool complete = false;
        try {
            complete = during(advance);
        } catch (...) {
            end(true);
            throw;
        }
        if (complete)
            end(false);
        else if (!posted_ && event_ >= 0)
            recorder_->at(event_).posted = recorder_->now();
        posted_ = true;
        return complete;
    }

    void waiting(bool begins) noexcept {
        if (event_ >= 0)
            (begins ? recorder_->at(event_).wait_start : recorder_->at(event_).wait_end) = recorder_->now();
    }

    void end(bool failed) noexcept {
        if (event_ < 0 || std::exchange(ended_, true))
            return;
        TraceEvent& event = recorder_->at(event_);
        event.failed = failed;
        event.end = recorder_->now();
        if (!posted_)
            event.posted = event.end;
    }

  private:
    std::shared_ptr<TraceRecorder> recorder_;
    int row_;
    Index event_;
    bool posted_ = false;
    bool ended_ = false;
};

/// An operation, `Started` or `Message`, and its event.
template <std::derived_from<Started> Kind>
class TracedOperation : public Kind {
  public:
    template <class Start>
    TracedOperation(std::shared_ptr<TraceRecorder> recorder, const TraceEvent& event, Start start)
        : event_(std::move(recorder), event), inner_(event_.during(start)) {}

    bool advance() override {
        return event_.watch([&] { return inner_->advance(); });
    }
    bool revoke() noexcept override {
        event_.end(true);
        return inner_->revoke();
    }
    void waiting(bool begins) noexcept override {
        inner_->waiting(begins);
        event_.waiting(begins);
    }
    std::string waits_for() const override { return inner_->waits_for(); }

  protected:
    Kind& inner() { return *inner_; }

  private:
    TracedEvent event_;
    std::unique_ptr<Kind> inner_;
};

using TracedCollective = TracedOperation<Started>;

class TracedMessage final : public TracedOperation<Message> {
  public:
    using TracedOperation::TracedOperation;

    const std::byte* borrow() override { return inner().borrow(); }
    void give_back() noexcept override { inner().give_back(); }
};

} // namespace reigen::inline REIGEN_INSTRUCTION_SET::detail
