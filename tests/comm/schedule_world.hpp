#pragma once

#include <reigen/comm/collectives/schedule.hpp>

#include <cstdint>
#include <deque>
#include <map>
#include <stdexcept>
#include <utility>
#include <vector>

// Runs the schedules of all ranks of a world without threads, sends or a backend: nothing is buffered, a message
// moves only when both its sides have been started, and a sum remembers the order of its terms.

namespace schedules_test {

using reigen::Index;
using reigen::Memory;
using reigen::Piece;
using reigen::Round;
using reigen::Schedule;

using Value = std::uint64_t;

/// Neither commutative nor associative: only the very order of rank 0, 1, 2, ... gives the same value.
inline Value add(Value a, Value b) {
    return (a * 0x9E3779B97F4A7C15 + 0x632BE59BD9B4E019) ^ (b + (b << 7));
}

inline Value value(int rank, Index i) {
    return Value(rank + 1) * 1000003 + Value(i) * 7919;
}

struct Rank {
    Schedule schedule;
    std::vector<Value> in;
    std::vector<Value> out;
    bool in_place = false;
    std::vector<Value> scratch = {};
    std::size_t round = 0;
    bool started = false;
    Index open = 0; // messages of this round still under way
    Index messages = 0;
    Index elements = 0;

    Value* at(const Piece& piece) {
        std::vector<Value>& memory = piece.memory == Memory::scratch           ? scratch
                                     : piece.memory == Memory::in && !in_place ? in
                                                                               : out;
        if (piece.first < 0 || piece.count < 0 || piece.first + piece.count > Index(memory.size()))
            throw std::logic_error("a piece lies outside its memory");
        return memory.data() + piece.first;
    }

    bool finished() const { return round == schedule.rounds.size(); }
};

class World {
  public:
    explicit World(std::vector<Rank> ranks) : ranks_(std::move(ranks)) {
        for (Rank& rank : ranks_)
            rank.scratch.assign(std::size_t(rank.schedule.scratch), 0xdead);
    }

    /// Whether every rank came to its end and no message was left over.
    bool run() {
        bool moved = true;
        while (moved) {
            moved = false;
            for (std::size_t r = 0; r < ranks_.size(); ++r)
                moved = step(int(r)) || moved;
        }
        for (const Rank& rank : ranks_)
            if (!rank.finished())
                return false;
        for (const auto& [pair, pieces] : waiting_sends_)
            if (!pieces.empty())
                return false;
        for (const auto& [pair, pieces] : waiting_receives_)
            if (!pieces.empty())
                return false;
        return true;
    }

    const std::vector<Rank>& ranks() const { return ranks_; }

  private:
    using Pair = std::pair<int, int>; // from, to

    bool step(int r) {
        Rank& rank = ranks_[std::size_t(r)];
        if (rank.finished())
            return false;
        if (!rank.started) {
            start(r);
            return true;
        }
        if (rank.open > 0)
            return false;
        for (const auto& sum : round_of(rank).adds)
            for (Index i = 0; i < sum.to.count; ++i)
                add_element(rank, sum, i);
        ++rank.round;
        rank.started = false;
        return true;
    }

    static const Round& round_of(const Rank& rank) { return rank.schedule.rounds[rank.round]; }

    static void add_element(Rank& rank, const reigen::Add& sum, Index i) {
        Value total = rank.at(sum.terms[0])[i];
        for (std::size_t t = 1; t < sum.terms.size(); ++t)
            total = add(total, rank.at(sum.terms[t])[i]);
        rank.at(sum.to)[i] = total;
    }

    void start(int r) {
        Rank& rank = ranks_[std::size_t(r)];
        const Round& round = round_of(rank);
        rank.started = true;
        rank.open = Index(round.receives.size() + round.sends.size());
        for (const auto& receive : round.receives)
            waiting_receives_[{receive.peer, r}].push_back(receive.piece);
        for (const auto& send : round.sends) {
            waiting_sends_[{r, send.peer}].push_back(send.piece);
            ++rank.messages;
            rank.elements += send.piece.count;
        }
        for (const auto& copy : round.copies)
            std::copy_n(rank.at(copy.from), copy.to.count, rank.at(copy.to));
        for (int peer = 0; peer < int(ranks_.size()); ++peer) {
            exchange(r, peer);
            exchange(peer, r);
        }
    }

    void exchange(int from, int to) {
        auto& sends = waiting_sends_[{from, to}];
        auto& receives = waiting_receives_[{from, to}];
        while (!sends.empty() && !receives.empty()) {
            if (sends.front().count != receives.front().count)
                throw std::logic_error("a message and its receive have different sizes");
            Rank& sender = ranks_[std::size_t(from)];
            Rank& receiver = ranks_[std::size_t(to)];
            std::copy_n(sender.at(sends.front()), sends.front().count, receiver.at(receives.front()));
            --sender.open;
            --receiver.open;
            sends.pop_front();
            receives.pop_front();
        }
    }

    std::vector<Rank> ranks_;
    std::map<Pair, std::deque<Piece>> waiting_sends_;
    std::map<Pair, std::deque<Piece>> waiting_receives_;
};

} // namespace schedules_test
