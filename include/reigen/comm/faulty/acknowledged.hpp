#pragma once

#include <reigen/comm/backend/wrapper.hpp>

#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace reigen::inline REIGEN_INSTRUCTION_SET::detail {

/// Empty messages of a group's own by which a receiver says that it has taken a message. Making it is collective.
class Acknowledgements {
  public:
    explicit Acknowledgements(Backend& group) : channel_(same_group(group)) {}

    std::unique_ptr<Message> await(int from, int tag) {
        return channel_->start_message(empty(Call::receive, from, tag));
    }

    /// Nobody waits for these to leave: they are kept until they have.
    void send(int to, int tag) {
        leaving_.push_back(channel_->start_message(empty(Call::send, to, tag)));
        std::erase_if(leaving_, [](const auto& message) { return message->advance(); });
    }

  private:
    static Operation empty(Call call, int peer, int tag) {
        Operation operation;
        operation.call = call;
        operation.peer = peer;
        operation.tag = tag;
        return operation;
    }

    std::shared_ptr<Backend> channel_;
    std::vector<std::unique_ptr<Message>> leaving_; // refer to the channel, so they go first
};

/// A message whose send is complete only when the receive is, over a transport that lets a sender go earlier.
///
/// At most one between two ranks may be on its way with a tag, as an acknowledgement does not say of which it is.
class AcknowledgedMessage final : public Message {
  public:
    AcknowledgedMessage(std::unique_ptr<Message> message, Acknowledgements& acknowledgements,
                        const Operation& operation)
        : message_(std::move(message)), acknowledgements_(acknowledgements), operation_(operation) {
        if (operation.call == Call::send)
            taken_ = acknowledgements.await(operation.peer, operation.tag);
    }

    bool advance() override {
        moved_ = moved_ || message_->advance();
        if (!moved_)
            return false;
        if (taken_)
            return taken_->advance();
        acknowledgements_.send(operation_.peer, operation_.tag);
        return true;
    }

    bool revoke() noexcept override {
        const bool moved = moved_ || message_->revoke();
        return (!taken_ || taken_->revoke()) && moved;
    }

    std::string waits_for() const override { return message_->waits_for(); }

  private:
    std::unique_ptr<Message> message_;
    Acknowledgements& acknowledgements_;
    Operation operation_;
    std::unique_ptr<Message> taken_; // of a send
    bool moved_ = false;
};

} // namespace reigen::inline REIGEN_INSTRUCTION_SET::detail
