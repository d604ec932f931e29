#include "shard_sizes/crew.hpp"

#include "support/stopwatch.hpp"

namespace shard_sizes {
namespace {

void repeat(Work& work, Index runs) {
    for (Index i = 0; i < runs; ++i)
        work.run();
}

} // namespace

Crew::Crew(const reigen::Communicator& world, std::span<const Case> cases)
    : world_(world), orders_(world_), cases_(cases), current_(cases.size()) {
    for (int ranks = 1; ranks <= world.size(); ++ranks) {
        const reigen::Communicator part = world.split(world.rank() < ranks ? 0 : 1, world.rank());
        meshes_.emplace_back(part, std::vector<reigen::MeshAxis>{{reigen::tp, part.size()}});
    }
}

Measured Crew::measure(std::size_t which, Index runs) {
    orders_.give({which, runs});
    prepare(which);
    Measured result = run_together(runs);
    result.alone = bench::wall_seconds_of([&] { repeat(*alone_, runs); }) / double(runs);
    return result;
}

void Crew::dismiss() {
    orders_.dismiss();
}

void Crew::follow() {
    orders_.follow([this](const bench::Order& order) {
        prepare(order.which);
        if (takes_part())
            run_together(order.runs);
    });
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
    double seconds = bench::wall_seconds_of([&] { repeat(*work_, runs); });
    const Index bytes = reigen::traffic_of_rank().bytes - bytes_before;
    ranks.all_reduce(std::span(&seconds, 1), reigen::Reduction::max);
    return {.seconds = seconds / double(runs), .bytes_sent = double(bytes) / double(runs)};
}

bool Crew::takes_part() const {
    return world_.rank() < cases_[current_].ranks;
}

} // namespace shard_sizes
