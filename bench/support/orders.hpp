#pragma once

#include <reigen/comm/communicator.hpp>

#include <array>
#include <cstddef>

namespace bench {

/// What the ranks of a benchmark are to run together: a case, and how often.
struct Order {
    std::size_t which = 0;
    reigen::Index runs = 0;
};

/// How ranks measure together: Google Benchmark runs on rank 0 alone and decides there what is run and how often; the
/// others follow its orders.
class Orders {
  public:
    /// `world` outlives it.
    explicit Orders(const reigen::Communicator& world) : world_(world) {}

    /// Rank 0: has the others carry it out too.
    void give(const Order& order) const { announce({reigen::Index(order.which), order.runs}); }

    /// Rank 0: lets the others go.
    void dismiss() const { announce({-1, 0}); }

    /// The others: carries out what rank 0 orders until it lets them go.
    template <class CarryOut>
    void follow(CarryOut carry_out) const {
        for (Words words = announce({}); words[0] >= 0; words = announce({}))
            carry_out(Order{std::size_t(words[0]), words[1]});
    }

  private:
    using Words = std::array<reigen::Index, 2>;

    /// Rank 0's words, on every rank.
    Words announce(Words words) const {
        world_.broadcast(words, 0);
        return words;
    }

    const reigen::Communicator& world_;
};

} // namespace bench
