#pragma once

#include <reigen/comm/backend/backend.hpp>

#include <cstring>
#include <memory>
#include <span>
#include <string>

namespace reigen::inline REIGEN_INSTRUCTION_SET {

namespace detail {

/// What was over when it started.
class Finished final : public Started {
  public:
    bool advance() override { return true; }
    bool revoke() noexcept override { return true; }
    std::string waits_for() const override { return {}; }
};

} // namespace detail

/// One rank alone: its collectives are copies at most, and there is nobody to send to.
class SelfBackend final : public Backend {
  public:
    int rank() const override { return 0; }
    int size() const override { return 1; }
    std::string description() const override { return "alone"; }

    std::unique_ptr<Message> start_message(const Operation& operation) override {
        throw ArgumentError(concat(to_string(operation), ": there is only one rank"));
    }

    std::unique_ptr<Started> start_collective(const Operation& operation) override {
        if (operation.in != operation.out && operation.out_size > 0)
            std::memcpy(operation.out, operation.in, std::size_t(operation.out_size * size_of(operation.type)));
        return std::make_unique<detail::Finished>();
    }

    std::shared_ptr<Backend> split(int, std::span<const int>) override { return std::make_shared<SelfBackend>(); }
};

} // namespace reigen::inline REIGEN_INSTRUCTION_SET
