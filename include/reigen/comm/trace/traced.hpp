#pragma once

#include <reigen/comm/backend/wrapper.hpp>
#include <reigen/comm/trace/operation.hpp>

#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <tuple>
#include <utility>
#include <vector>

namespace reigen::inline REIGEN_INSTRUCTION_SET {

/// Records every operation and the messages it is made of; see `Trace`.
class Traced final : public Wrapper {
  public:
    Traced(std::shared_ptr<Backend> inner, std::shared_ptr<detail::TraceRecorder> recorder, detail::TraceGroup group)
        : Wrapper(std::move(inner)),
          recorder_(std::move(recorder)),
          members_(group.members),
          id_(group.id),
          group_(recorder_->add_group(std::move(group))) {}

    std::unique_ptr<Message> start_message(const Operation& operation) override {
        return std::make_unique<detail::TracedMessage>(recorder_, message_event(operation),
                                                       [&] { return inner().start_message(operation); });
    }

    std::unique_ptr<Started> start_collective(const Operation& operation) override {
        Operation seen = operation;
        if (seen.messages == nullptr)
            seen.messages = this;
        return std::make_unique<detail::TracedCollective>(recorder_, collective_event(operation),
                                                          [&] { return inner().start_collective(seen); });
    }

    void take_note(Traffic sent) override {
        const auto collective = recorder_->current();
        if (collective.row >= 0)
            count_sent(collective.row, collective.event, sent);
        inner().take_note(sent);
    }

    std::shared_ptr<Backend> split(int color, std::span<const int> members) override {
        detail::TraceGroup part{detail::mixed(detail::mixed(id_, splits_++), std::uint64_t(color)), {}};
        for (const int member : members)
            part.members.push_back(members_[std::size_t(member)]);
        return std::make_shared<Traced>(inner().split(color, members), recorder_, std::move(part));
    }

  private:
    using Kind = detail::TraceEvent::Kind;

    detail::TraceEvent event_of(const Operation& operation) const {
        detail::TraceEvent event;
        event.call = operation.call;
        event.blocks = operation.blocks;
        event.group = group_;
        event.bytes = std::max(operation.in_size, operation.out_size) * size_of(operation.type);
        event.start = recorder_->now();
        return event;
    }

    int count(const Operation& operation) {
        const int row = recorder_->row(false, operation.call, operation.group);
        ++recorder_->row(row).count;
        return row;
    }

    detail::TraceEvent collective_event(const Operation& operation) {
        detail::TraceEvent event = event_of(operation);
        event.number = collectives_++;
        event.row = count(operation);
        return event;
    }

    detail::TraceEvent message_event(const Operation& operation) {
        detail::TraceEvent event = event_of(operation);
        const auto collective = recorder_->current();
        const bool nested = operation.part_of.has_value() && collective.row >= 0;
        event.kind = nested ? Kind::nested : Kind::operation;
        event.peer = members_[std::size_t(operation.peer)];
        event.tag = operation.tag;
        event.parent = nested ? collective.event : -1;
        event.number = nested ? 0 : messages_[{operation.call, operation.peer, operation.tag}]++;
        event.row = nested ? collective.row : count(operation);
        if (operation.call == Call::send)
            count_sent(event.row, event.parent, {1, event.bytes});
        return event;
    }

    /// `collective`: the event of the one it is part of, or -1.
    void count_sent(int row_number, Index collective, Traffic sent) {
        detail::TraceRow& row = recorder_->row(row_number);
        row.messages += sent.messages;
        row.bytes += sent.bytes;
        if (collective < 0)
            return;
        detail::TraceEvent& event = recorder_->at(collective);
        event.sent_messages += sent.messages;
        event.sent_bytes += sent.bytes;
    }

    std::shared_ptr<detail::TraceRecorder> recorder_;
    std::vector<int> members_;
    std::uint64_t id_;
    int group_;
    std::uint64_t splits_ = 0;
    Index collectives_ = 0;
    std::map<std::tuple<Call, int, int>, Index> messages_; // started so far: call, other rank, tag
};

} // namespace reigen::inline REIGEN_INSTRUCTION_SET
