#include "overlap/crew.hpp"
#include "support/stopwatch.hpp"

namespace overlap {
namespace {

/// Seconds of one run, of the slowest rank, known to all; the ranks start together.
template <class Run>
double slowest(const reigen::Communicator& world, Index runs, Run run) {
    world.barrier();
    double seconds = bench::wall_seconds_of([&] {
        for (Index i = 0; i < runs; ++i)
            run();
    });
    world.all_reduce(std::span(&seconds, 1), reigen::Reduction::max);
    return seconds / double(runs);
}

} // namespace

Crew::Crew(const reigen::Communicator& world, std::span<const Case> cases)
    : world_(world), cases_(cases), current_(cases.size()) {}

Seconds Crew::measure(std::size_t which, Index runs) {
    Order order{Index(which), runs};
    announce(order);
    return carry_out(order);
}

void Crew::dismiss() {
    Order order;
    announce(order);
}

void Crew::follow() {
    for (Order order; announce(order), order.which >= 0;)
        carry_out(order);
}

void Crew::announce(Order& order) const {
    world_.broadcast(std::span(&order.which, 1), 0);
    world_.broadcast(std::span(&order.runs, 1), 0);
}

Seconds Crew::carry_out(const Order& order) {
    if (const auto which = std::size_t(order.which); which != current_) {
        work_ = nullptr;
        work_ = cases_[which].make(world_);
        current_ = which;
    }
    const auto time = [&](auto run) { return slowest(world_, order.runs, run); };
    Seconds seconds;
    seconds.overlapped = time([&] { work_->overlapped(); });
    seconds.plain = time([&] { work_->plain(); });
    seconds.computing = time([&] { work_->computing(); });
    seconds.alone = time([&] {
        if (world_.rank() == 0)
            work_->whole();
    });
    seconds.all_alone = time([&] { work_->whole(); });
    return seconds;
}

} // namespace overlap
