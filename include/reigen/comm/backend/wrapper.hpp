#pragma once

#include <reigen/comm/backend/backend.hpp>

#include <memory>
#include <numeric>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace reigen::inline REIGEN_INSTRUCTION_SET {

/// A backend over another one, which it passes everything on to: the base of those that check, record or disturb.
///
/// `start_collective` hands the whole call on, so that a backend with collectives of its own keeps them. A wrapper that
/// wants to see the messages of the others sets `Operation::messages` to itself on the way, unless it is set already.
class Wrapper : public Backend {
  public:
    explicit Wrapper(std::shared_ptr<Backend> inner) : inner_(std::move(inner)) {}

    int rank() const override { return inner_->rank(); }
    int size() const override { return inner_->size(); }
    bool compares() const override { return inner_->compares(); }
    int origin(int rank) const override { return inner_->origin(rank); }
    int node() const override { return inner_->node(); }
    std::string description() const override { return inner_->description(); }
    bool lends(int peer) const override { return inner_->lends(peer); }

    std::unique_ptr<Message> start_message(const Operation& operation) override {
        return inner_->start_message(operation);
    }

    std::unique_ptr<Started> start_collective(const Operation& operation) override {
        return inner_->start_collective(operation);
    }

    /// What it stands on.
    const std::shared_ptr<Backend>& wrapped() const { return inner_; }

    bool reads_in_place() const override { return inner_->reads_in_place(); }
    SharedAddress address_of(const std::byte* memory, Index bytes) const override {
        return inner_->address_of(memory, bytes);
    }
    const std::byte* in_place(int rank, SharedAddress memory) const override { return inner_->in_place(rank, memory); }

    Traffic traffic() const override { return Backend::traffic() + inner_->traffic(); }

    void take_note(Traffic sent) override { inner_->take_note(sent); }

  protected:
    Backend& inner() const { return *inner_; }

  private:
    std::shared_ptr<Backend> inner_;
};

namespace detail {

/// A group of the same ranks with messages of its own, for what must not meet those of `backend`. Collective.
inline std::shared_ptr<Backend> same_group(Backend& backend) {
    std::vector<int> members(std::size_t(backend.size()));
    std::iota(members.begin(), members.end(), 0);
    return backend.split(0, members);
}

} // namespace detail

} // namespace reigen::inline REIGEN_INSTRUCTION_SET
