#pragma once

#include <reigen/comm/communicator.hpp>
#include <reigen/comm/trace/clock.hpp>

#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <vector>

namespace reigen::inline REIGEN_INSTRUCTION_SET::detail {

/// When the last of those who take part in an operation started it.
struct LastStart {
    Index at = 0; // by rank 0's clock
    Index rank = -1;
    Index known = 0; // of how many ranks the trace has the event
};

/// Which operation it is, alike on all ranks that take part: the number-th collective of a group, or the number-th
/// message between two ranks of a group with a tag.
using OperationKey = std::array<Index, 5>; // group, sender, receiver, tag, number

inline OperationKey key_of(const TraceEvent& event, const TraceGroup& group, int rank) {
    const auto id = Index(group.id);
    if (event.call == Call::send)
        return {id, rank, event.peer, event.tag, event.number};
    if (event.call == Call::receive)
        return {id, event.peer, rank, event.tag, event.number};
    return {id, -1, -1, -1, event.number};
}

/// Numbers for each rank.
using Mail = std::vector<std::vector<Index>>;

/// Brings every rank what the others have for it. Collective.
inline Mail deliver(const Communicator& ranks, const Mail& out) {
    const std::vector<Index> one(out.size(), 1);
    std::vector<Index> out_sizes;
    std::vector<Index> all;
    for (const auto& letter : out) {
        out_sizes.push_back(Index(letter.size()));
        all.insert(all.end(), letter.begin(), letter.end());
    }
    std::vector<Index> in_sizes(out.size());
    ranks.all_to_all(out_sizes, one, in_sizes, one);
    std::vector<Index> received(std::size_t(sum_of(in_sizes)));
    ranks.all_to_all(all, out_sizes, received, in_sizes);
    Mail in;
    auto next = received.begin();
    for (const Index size : in_sizes) {
        in.emplace_back(next, next + size);
        next += size;
    }
    return in;
}

/// Finds the last start of every operation that the ranks have recorded.
///
/// Every operation has a rank that is asked about it, decided by its key; so each keeps about what it has recorded
/// itself, and nobody all. Events travel `batch` at a time.
class LastStarts {
  public:
    /// Collective, as the two others.
    LastStarts(const Communicator& ranks, const TraceRecorder& recorder, const TraceClock& clock)
        : ranks_(ranks), recorder_(recorder), clock_(clock), answers_(std::size_t(recorder.size())) {
        std::array<Index, 1> batches = {(recorder.size() + batch - 1) / batch};
        ranks.all_reduce(batches, Reduction::max);
        for (Index k = 0; k < batches[0]; ++k)
            tell(k * batch);
        for (Index k = 0; k < batches[0]; ++k)
            ask(k * batch);
    }

    /// By the number of the event; of scopes and nested messages nothing.
    std::vector<LastStart> take() { return std::move(answers_); }

  private:
    static constexpr Index batch = 4096;
    static constexpr Index key_numbers = std::tuple_size_v<OperationKey>;

    /// Calls visit(number, key, the rank to ask) for the operations of one batch of events.
    template <class Visit>
    void for_batch(Index first, Visit visit) const {
        for (Index number = first; number < std::min(first + batch, recorder_.size()); ++number) {
            const TraceEvent& event = recorder_.at(number);
            if (event.kind != TraceEvent::Kind::operation)
                continue;
            const OperationKey key = key_of(event, recorder_.group(event.group), ranks_.rank());
            std::uint64_t hash = 0;
            for (const Index part : key)
                hash = mixed(hash, std::uint64_t(part));
            visit(number, key, std::size_t(hash % std::uint64_t(ranks_.size())));
        }
    }

    void tell(Index first) {
        Mail out(std::size_t(ranks_.size()));
        for_batch(first, [&](Index number, const OperationKey& key, std::size_t who) {
            out[who].insert(out[who].end(), key.begin(), key.end());
            out[who].push_back(clock_.of_rank_0(recorder_.at(number).start));
        });
        const Mail in = deliver(ranks_, out);
        for (std::size_t rank = 0; rank < in.size(); ++rank)
            for (auto next = in[rank].begin(); next != in[rank].end(); next += key_numbers + 1)
                note(Index(rank), key_at(next), next[key_numbers]);
    }

    void note(Index rank, const OperationKey& key, Index start) {
        LastStart& last = known_[key];
        if (last.known++ == 0 || start > last.at) {
            last.at = start;
            last.rank = rank;
        }
    }

    void ask(Index first) {
        Mail out(std::size_t(ranks_.size()));
        for_batch(first, [&](Index, const OperationKey& key, std::size_t who) {
            out[who].insert(out[who].end(), key.begin(), key.end());
        });
        const Mail answers = deliver(ranks_, replies(deliver(ranks_, out)));
        std::vector<std::size_t> read(answers.size(), 0);
        for_batch(first, [&](Index number, const OperationKey&, std::size_t who) {
            const Index* const answer = answers[who].data() + std::exchange(read[who], read[who] + 3);
            answers_[std::size_t(number)] = {answer[0], answer[1], answer[2]};
        });
    }

    Mail replies(const Mail& questions) const {
        Mail out(questions.size());
        for (std::size_t rank = 0; rank < questions.size(); ++rank)
            for (auto next = questions[rank].begin(); next != questions[rank].end(); next += key_numbers) {
                const LastStart& last = known_.at(key_at(next));
                out[rank].insert(out[rank].end(), {last.at, last.rank, last.known});
            }
        return out;
    }

    static OperationKey key_at(std::vector<Index>::const_iterator first) {
        OperationKey key;
        std::copy_n(first, key.size(), key.begin());
        return key;
    }

    const Communicator& ranks_;
    const TraceRecorder& recorder_;
    const TraceClock& clock_;
    std::map<OperationKey, LastStart> known_;
    std::vector<LastStart> answers_;
};

} // namespace reigen::inline REIGEN_INSTRUCTION_SET::detail
