#include "shard_sizes/crew.hpp"

#include <chrono>

namespace shard_sizes {
namespace {

template <class Body>
double wall_seconds(Body&& body) {
    const auto start = std::chrono::steady_clock::now();
    body();
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

void repeat(Work& work, Index runs) {
    for (Index i = 0; i < runs; ++i)
        work.run();
}

} // namespace

Crew::Crew(const reigen::Communicator& world, std::span<const Case> cases)
    : world_(world), cases_(cases), current_(cases.size()) {
    for (int ranks = 1; ranks <= world.size(); ++ranks) {
        const reigen::Communicator part = world.split(world.rank() < ranks ? 0 : 1, world.rank());
        meshes_.emplace_back(part, std::vector<reigen::MeshAxis>{{reigen::tp, part.size()}});
    }
}

Measured Crew::measure(std::size_t which, Index runs) {
    Order order{Index(which), runs};
    announce(order);
    prepare(which);
    Measured result = run_together(runs);
    result.alone = wall_seconds([&] { repeat(*alone_, runs); }) / double(runs);
    return result;
}

void Crew::dismiss() {
    Order order;
    announce(order);
}

void Crew::follow() {
    for (Order order; announce(order), order.which >= 0;) {
        prepare(std::size_t(order.which));
        if (takes_part())
            run_together(order.runs);
    }
}

void Crew::announce(Order& order) const {
    world_.broadcast(std::span(&order.which, 1), 0);
    world_.broadcast(std::span(&order.runs, 1), 0);
}

void Crew::prepare(std::size_t which) {
    if (which == current_)
        return;
    current_ = which;
    work_ = nullptr;
    alone_ = nullptr;
    if (takes_part())
        work_ = make_work(cases_[which], meshes_[std::size_t(cases_[which].ranks - 1)]);
    if (world_.rank() == 0)
        alone_ = make_work(cases_[which], reigen::Mesh());
}

/// The time of the slowest rank, known to all.
Measured Crew::run_together(Index runs) {
    const reigen::Communicator& ranks = meshes_[std::size_t(cases_[current_].ranks - 1)].world();
    ranks.barrier();
    const Index bytes_before = reigen::traffic_of_rank().bytes;
    double seconds = wall_seconds([&] { repeat(*work_, runs); });
    const Index bytes = reigen::traffic_of_rank().bytes - bytes_before;
    ranks.all_reduce(std::span(&seconds, 1), reigen::Reduction::max);
    return {.seconds = seconds / double(runs), .bytes_sent = double(bytes) / double(runs)};
}

bool Crew::takes_part() const {
    return world_.rank() < cases_[current_].ranks;
}

} // namespace shard_sizes
