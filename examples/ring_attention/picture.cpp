#include <ring_attention/picture.hpp>

#include <support/text_table.hpp>
#include <support/units.hpp>

#include <ostream>
#include <string>

namespace ring_attention {
namespace {

using namespace reigen;

std::string hop_name(const Hop& hop) {
    return concat("hop ", hop.step, hop.turn == Turn::back ? " back" : "");
}

/// "k1 mixed 60%": the keys of rank 1, of which the queries see 60% of the pairs.
std::string cell(const std::optional<HopWork>& work) {
    if (!work)
        return "-";
    const std::string block = concat('k', work->block, ' ');
    if (!work->needed || work->seen == 0)
        return block + "empty";
    if (work->seen == work->pairs)
        return block + "full";
    return block + concat("mixed ", 100 * work->seen / work->pairs, '%');
}

/// The ranks that hold each position.
std::vector<int> owners(const Sequences& sequences, int ranks) {
    std::vector<int> result(std::size_t(sequences.length), 0);
    for (int rank = 0; rank < ranks; ++rank) {
        const Runs held = sequences.positions(ranks, rank);
        for (Index i = 0; i < held.size(); ++i)
            result[std::size_t(held[i])] = rank;
    }
    return result;
}

char hop_sign(int hop) {
    return "0123456789abcdefghijklmnopqrstuvwxyz"[hop % 36];
}

} // namespace

void show_positions(const Sequences& sequences, int ranks, std::ostream& out) {
    out << "Who holds which of " << sequences.length << " positions (" << to_string(sequences.layout) << ")\n\n";
    examples::TextTable table({"rank", "tokens", "positions"});
    for (int rank = 0; rank < ranks; ++rank) {
        const Runs held = sequences.positions(ranks, rank);
        std::string text = held.to_string();
        if (text.size() > 60)
            text = text.substr(0, text.rfind(' ', 56)) + " ...";
        table.add({concat(rank), concat(held.size()), text});
    }
    out << table << '\n';
}

void show_hops(const HopPlan& plan, std::ostream& out) {
    out << "What each rank computes at each hop: its queries with the keys k of the rank they come from\n\n";
    std::vector<std::string> heading = {"rank"};
    for (const Hop& hop : plan.hops)
        heading.push_back(hop_name(hop));
    heading.emplace_back("share of all");
    Index all = 0;
    for (int rank = 0; rank < int(plan.at.size()); ++rank)
        all += plan.seen_by(rank);
    examples::TextTable table(heading);
    for (int rank = 0; rank < int(plan.at.size()); ++rank) {
        std::vector<std::string> row = {concat(rank)};
        for (const auto& work : plan.at[std::size_t(rank)])
            row.push_back(cell(work));
        row.push_back(all == 0 ? "-" : examples::fixed_text(100 * double(plan.seen_by(rank)) / double(all), 1) + '%');
        table.add(row);
    }
    out << table << "\n    empty: nothing to compute, the block is passed on; -: the block did not come this far\n\n";
}

void show_pairs(const Sequences& sequences, const Mask& mask, const HopPlan& plan, std::ostream& out) {
    const std::vector<int> owner = owners(sequences, int(plan.at.size()));
    out << "At which hop each query (down) meets each key (across); a point is masked\n\n";
    for (Index q = 0; q < sequences.length; ++q) {
        const int rank = owner[std::size_t(q)];
        out << "    ";
        for (Index k = 0; k < sequences.length; ++k) {
            const auto hop = plan.hop_of(rank, owner[std::size_t(k)]);
            out << (hop && mask.seen_from(q).contains(k) ? hop_sign(*hop) : '.') << ' ';
        }
        out << "  query " << q << " on rank " << rank << '\n';
    }
    out << '\n';
}

} // namespace ring_attention
