#include <ring_attention/hops.hpp>

namespace ring_attention {
namespace {

using namespace reigen;

HopWork work_of(const Mask& mask, const Runs& queries, const Runs& keys, int block, bool needed) {
    HopWork work = {block, 0, queries.size() * keys.size(), needed};
    for (Index i = 0; needed && i < queries.size(); ++i)
        for (Index j = 0; j < keys.size(); ++j)
            work.seen += Index(mask.seen_from(queries[i]).contains(keys[j]));
    return work;
}

} // namespace

std::optional<int> HopPlan::hop_of(int rank, int block) const {
    const auto& row = at[std::size_t(rank)];
    for (std::size_t hop = 0; hop < row.size(); ++hop)
        if (row[hop] && row[hop]->block == block && row[hop]->needed)
            return int(hop);
    return std::nullopt;
}

Index HopPlan::seen_by(int rank) const {
    Index sum = 0;
    for (const auto& work : at[std::size_t(rank)])
        sum += work ? work->seen : 0;
    return sum;
}

HopPlan plan_hops(const Sequences& sequences, const Mask& mask, int ranks) {
    std::vector<Runs> positions;
    for (int rank = 0; rank < ranks; ++rank)
        positions.push_back(sequences.positions(ranks, rank));
    const auto held = [&](int rank) -> const Runs& { return positions[std::size_t(rank)]; };
    HopPlan plan = {
        {}, {}, RingRoute(ranks, [&](int rank, int block) { return may_see(mask, held(rank), 0, held(block)); })};
    for (const Turn turn : both_turns)
        for (int step = turn == Turn::onward ? 0 : 1; step <= plan.route.steps(turn); ++step)
            plan.hops.push_back({turn, step});
    for (int rank = 0; rank < ranks; ++rank) {
        auto& row = plan.at.emplace_back();
        for (const Hop& hop : plan.hops) {
            const int block = plan.route.block_at(hop.turn, rank, hop.step);
            auto& cell = row.emplace_back();
            if (plan.route.steps(hop.turn, block) >= hop.step)
                cell = work_of(mask, held(rank), held(block), block, plan.route.needed(rank, block));
        }
    }
    return plan;
}

} // namespace ring_attention
