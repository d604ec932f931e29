#pragma once

#include <reigen/comm/backend/wrapper.hpp>
#include <reigen/comm/collectives/execution.hpp>
#include <reigen/comm/communicator.hpp>
#include <reigen/comm/faulty/acknowledged.hpp>
#include <reigen/comm/faulty/blocks.hpp>
#include <reigen/comm/faulty/message.hpp>
#include <reigen/comm/faulty/plan.hpp>

#include <memory>
#include <span>
#include <string>
#include <utility>

namespace reigen::inline REIGEN_INSTRUCTION_SET {

/// A backend whose messages meet what a `FaultPlan` has for them. Collectives come past it as messages.
class Faulty final : public Wrapper {
  public:
    Faulty(std::shared_ptr<Backend> inner, std::shared_ptr<detail::FaultState> state)
        : Wrapper(std::move(inner)), state_(std::move(state)) {
        if (state_->plan.synchronous)
            acknowledgements_ = std::make_unique<detail::Acknowledgements>(this->inner());
    }

    std::string description() const override { return inner().description() + "; by messages, with faults"; }
    bool compares() const override { return false; } // its collectives are messages, which nobody compares
    bool reads_in_place() const override { return false; }
    bool lends(int peer) const override { return state_->plan.block == 0 && inner().lends(peer); }

    std::unique_ptr<Message> start_message(const Operation& operation) override {
        state_->next();
        return std::make_unique<detail::FaultyMessage>(
            state_, lines_, operation, [this](const Operation& started) { return start_undelayed(started); });
    }

    std::unique_ptr<Started> start_collective(const Operation& operation) override {
        return start_by_messages(*this, operation);
    }

    std::shared_ptr<Backend> split(int color, std::span<const int> members) override {
        return std::make_shared<Faulty>(inner().split(color, members), state_);
    }

  private:
    std::unique_ptr<Message> start_undelayed(const Operation& operation) {
        std::unique_ptr<Message> message =
            state_->plan.block > 0 ? std::make_unique<detail::MessageInBlocks>(inner(), operation, state_->plan.block)
                                   : inner().start_message(operation);
        // Memory that is lent is given back when it was taken, which is all that is wanted.
        if (acknowledgements_ && !inner().lends(operation.peer))
            return std::make_unique<detail::AcknowledgedMessage>(std::move(message), *acknowledgements_, operation);
        return message;
    }

    std::shared_ptr<detail::FaultState> state_;
    detail::Lines lines_;
    std::unique_ptr<detail::Acknowledgements> acknowledgements_;
};

/// The same ranks on a bad transport, which does what the plan says and all that a transport may do: for tests of what
/// communicates. Splits of it are as bad. Collective.
///
///     const Communicator world = faulty(good, {.delay = 1e-4, .late = 3, .synchronous = true, .block = 7});
///
/// Throws  CommunicationError on the rank and at the message that the plan lets fail
inline Communicator faulty(const Communicator& communicator, const FaultPlan& plan) {
    check(plan, communicator.size());
    auto state = std::make_shared<detail::FaultState>(plan, communicator.rank());
    Communicator result(std::make_shared<Faulty>(detail::same_group(*communicator.backend()), std::move(state)));
    result.set_deadline(communicator.deadline());
    return result;
}

} // namespace reigen::inline REIGEN_INSTRUCTION_SET
