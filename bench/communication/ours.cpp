#include "communication/contenders.hpp"

#include <reigen/core/buffer.hpp>

#include <algorithm>
#include <span>
#include <vector>

namespace communication {
namespace {

class Ours final : public Contender {
  public:
    Ours(const Case& which, const reigen::Communicator& world)
        : call_(which.call),
          world_(world),
          on_the_heap_(which.in_buffers ? 0 : std::size_t(2 * which.whole())),
          buffer_(which.in_buffers ? 2 * which.whole() : 0),
          whole_(memory().first(std::size_t(which.whole()))),
          other_(memory().last(std::size_t(which.whole()))),
          parts_(std::size_t(world.size()), which.whole() / world.size()) {}

    void refresh() override { std::ranges::fill(memory(), 1.0F); }

    void run() override {
        switch (call_) {
        case Call::all_reduce:
            return world_.all_reduce(whole_);
        case Call::all_gather:
            return world_.all_gather(part(), whole_);
        case Call::reduce_scatter:
            return world_.reduce_scatter(whole_, part());
        case Call::broadcast:
            return world_.broadcast(whole_, 0);
        case Call::all_to_all:
            return world_.all_to_all(whole_, parts_, other_, parts_);
        default:
            return world_.barrier();
        }
    }

  private:
    std::span<float> memory() { return buffer_.empty() ? std::span(on_the_heap_) : buffer_.span(); }
    std::span<float> part() { return other_.first(std::size_t(parts_.front())); }

    Call call_;
    reigen::Communicator world_;
    std::vector<float> on_the_heap_;
    reigen::Buffer<float> buffer_;
    std::span<float> whole_;
    std::span<float> other_;
    std::vector<Index> parts_;
};

} // namespace

std::unique_ptr<Contender> make_ours(const Case& which, const reigen::Communicator& world) {
    return std::make_unique<Ours>(which, world);
}

} // namespace communication
