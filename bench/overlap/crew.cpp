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
    : world_(world), orders_(world_), cases_(cases), current_(cases.size()) {}

Seconds Crew::measure(std::size_t which, Index runs) {
    const bench::Order order{which, runs};
    orders_.give(order);
    return carry_out(order);
}

void Crew::dismiss() {
    orders_.dismiss();
}

void Crew::follow() {
    orders_.follow([this](const bench::Order& order) { carry_out(order); });
}

Seconds Crew::carry_out(const bench::Order& order) {
    if (order.which != current_) {
        work_ = nullptr;
        work_ = cases_[order.which].make(world_);
        current_ = order.which;
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
