#pragma once

#include <reigen/comm/collectives/execution.hpp>

#include <memory>
#include <span>
#include <string>

namespace reigen::inline REIGEN_INSTRUCTION_SET {

/// One rank alone: its collectives are copies at most, and there is nobody to send to.
class SelfBackend final : public Backend {
  public:
    int rank() const override { return 0; }
    int size() const override { return 1; }
    std::string description() const override { return "alone"; }

    std::unique_ptr<Message> start_message(const Operation& operation) override {
        throw ArgumentError(concat(to_string(operation), ": there is only one rank"));
    }

    std::shared_ptr<Backend> split(int, std::span<const int>) override { return std::make_shared<SelfBackend>(); }
};

} // namespace reigen::inline REIGEN_INSTRUCTION_SET
