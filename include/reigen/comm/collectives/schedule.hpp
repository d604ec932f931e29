#pragma once

#include <reigen/comm/backend/operation.hpp>
#include <reigen/comm/collectives/part_sizes.hpp>

#include <span>
#include <vector>

namespace reigen::inline REIGEN_INSTRUCTION_SET {

/// Where a step reads or writes: what the caller gave, what the caller gets, or memory of the execution's own.
enum class Memory : std::uint8_t { in, out, scratch };

/// Elements first, ..., first + count - 1 of one of the memories.
struct Piece {
    Memory memory = Memory::out;
    Index first = 0;
    Index count = 0;
    bool operator==(const Piece&) const = default;
};

/// A message to or from another rank.
struct Transfer {
    int peer = 0;
    Piece piece;
};

struct Copy {
    Piece from;
    Piece to;
};

/// Combines the terms in the order listed.
struct Add {
    std::vector<Piece> terms;
    Piece to;
};

/// Messages that travel at the same time, and what is done with them.
///
/// All messages of a round are started together; its copies are made while they travel; its additions when what it
/// receives has come, and, where they overwrite what it sends, when that has been taken. So no order of completion can
/// deadlock, also where a send waits for its receive. What a round receives into scratch only its own additions read.
struct Round {
    std::vector<Transfer> receives;
    std::vector<Transfer> sends;
    std::vector<Copy> copies;
    std::vector<Add> adds;
};

/// What one rank does in one collective: plain data, made without any message.
struct Schedule {
    std::vector<Round> rounds;
    Index scratch = 0; // elements
};

namespace detail {

/// The other ranks in the order r + 1, r + 2, ..., so that not all of them call at the same door.
inline std::vector<int> peers_of(int rank, int size) {
    std::vector<int> peers;
    for (int step = 1; step < size; ++step)
        peers.push_back((rank + step) % size);
    return peers;
}

inline void send(Round& round, int peer, Piece piece) {
    if (piece.count > 0)
        round.sends.push_back({peer, piece});
}

inline void receive(Round& round, int peer, Piece piece) {
    if (piece.count > 0)
        round.receives.push_back({peer, piece});
}

/// Rank r receives its own slice from everybody and adds the slices in rank order into `to`.
///
///     P = 3, slices A B C of each rank's vector
///     rank 0   sends B to 1, C to 2     A0 + A1 + A2
///     rank 1   sends C to 2, A to 0     B0 + B1 + B2
///     rank 2   sends A to 0, B to 1     C0 + C1 + C2
inline Round scatter_round(int rank, int size, std::span<const Index> parts, Memory from, Piece to) {
    const auto starts = starts_of(parts);
    const auto part = [&](int r) { return Piece{from, starts[std::size_t(r)], parts[std::size_t(r)]}; };
    const auto slot = [&](int r) {
        return r == rank ? part(r) : Piece{Memory::scratch, Index(r < rank ? r : r - 1) * to.count, to.count};
    };
    Round round;
    for (const int peer : peers_of(rank, size)) {
        send(round, peer, part(peer));
        receive(round, peer, slot(peer));
    }
    if (to.count > 0) {
        Add add{{}, to};
        for (int r = 0; r < size; ++r)
            add.terms.push_back(slot(r));
        round.adds.push_back(std::move(add));
    }
    return round;
}

/// Rank r sends `mine` to everybody and receives the others' parts at their places in `out`.
inline Round gather_round(int rank, int size, std::span<const Index> parts, Piece mine) {
    const auto starts = starts_of(parts);
    Round round;
    for (const int peer : peers_of(rank, size)) {
        send(round, peer, mine);
        receive(round, peer, {Memory::out, starts[std::size_t(peer)], parts[std::size_t(peer)]});
    }
    return round;
}

inline void copy(Round& round, Piece from, Piece to) {
    if (to.count > 0)
        round.copies.push_back({from, to});
}

} // namespace detail

/// Collectives as data. Each function gives what `rank` of `size` does; counts and parts are in elements.
namespace schedules {

/// Largest vector, in bytes, that two ranks exchange whole instead of by halves: the bytes sent are the same, n, and
/// one exchange replaces two.
inline constexpr Index one_shot_bytes = 4096;

inline bool is_one_shot(int size, Index bytes) {
    return size == 2 && bytes <= one_shot_bytes;
}

/// Two-shot: reduce-scatter of balanced slices, then all-gather of the sums. In place.
///
/// Cost  rank r sends n + (P - 2) n_r elements (n_r its slice), that is 2 n (P-1)/P where P divides n, in at most
///       2 (P-1) messages. Two ranks with a small vector send it whole, in one message.
inline Schedule all_reduce(int rank, int size, Index count, Index element_bytes) {
    if (size == 1 || count == 0)
        return {};
    if (is_one_shot(size, count * element_bytes)) {
        const Piece own{Memory::out, 0, count};
        const Piece other{Memory::scratch, 0, count};
        const std::vector<Piece> terms = rank == 0 ? std::vector{own, other} : std::vector{other, own};
        return {{Round{{{1 - rank, other}}, {{1 - rank, own}}, {}, {{terms, own}}}}, count};
    }
    const auto parts = detail::balanced_parts(count, size);
    const Index mine = parts[std::size_t(rank)];
    const Piece own{Memory::out, detail::starts_of(parts)[std::size_t(rank)], mine};
    return {{detail::scatter_round(rank, size, parts, Memory::out, own), detail::gather_round(rank, size, parts, own)},
            mine * (size - 1)};
}

/// Cost  rank r sends n - n_r elements in at most P - 1 messages.
inline Schedule reduce_scatter(int rank, int size, std::span<const Index> parts) {
    const Index mine = parts[std::size_t(rank)];
    return {{detail::scatter_round(rank, size, parts, Memory::in, {Memory::out, 0, mine})}, mine * (size - 1)};
}

/// Cost  rank r sends (P - 1) n_r elements in P - 1 messages, none where its part is empty.
inline Schedule all_gather(int rank, int size, std::span<const Index> parts) {
    const Index mine = parts[std::size_t(rank)];
    Round round = detail::gather_round(rank, size, parts, {Memory::in, 0, mine});
    detail::copy(round, {Memory::in, 0, mine}, {Memory::out, detail::starts_of(parts)[std::size_t(rank)], mine});
    return {{std::move(round)}, 0};
}

/// Binomial tree: with v = (r - root) mod P, rank v hears from v - 2^k, 2^k its highest bit, and then tells
/// v + 2^k, v + 2^(k+1), ... The first told has the largest tree below it.
///
/// Cost  ceil(log2 P) hops; all ranks together send (P - 1) n elements.
inline Schedule broadcast(int rank, int size, Index count, int root) {
    if (count == 0)
        return {};
    const int relative = (rank - root + size) % size;
    const Piece all{Memory::out, 0, count};
    const auto absolute = [&](int r) { return (r + root) % size; };
    Schedule schedule;
    int reach = 1;
    while (reach <= relative)
        reach *= 2;
    if (relative > 0)
        detail::receive(schedule.rounds.emplace_back(), absolute(relative - reach / 2), all);
    Round tell;
    for (; relative + reach < size; reach *= 2)
        detail::send(tell, absolute(relative + reach), all);
    if (!tell.sends.empty())
        schedule.rounds.push_back(std::move(tell));
    return schedule;
}

/// Cost  rank r sends all but what it keeps, in at most P - 1 messages.
inline Schedule all_to_all(int rank, int size, std::span<const Index> out_parts, std::span<const Index> in_parts) {
    const auto out_starts = detail::starts_of(out_parts);
    const auto in_starts = detail::starts_of(in_parts);
    const auto leaving = [&](int r) {
        return Piece{Memory::in, out_starts[std::size_t(r)], out_parts[std::size_t(r)]};
    };
    const auto coming = [&](int r) { return Piece{Memory::out, in_starts[std::size_t(r)], in_parts[std::size_t(r)]}; };
    Round round;
    for (const int peer : detail::peers_of(rank, size)) {
        detail::send(round, peer, leaving(peer));
        detail::receive(round, peer, coming(peer));
    }
    detail::copy(round, leaving(rank), coming(rank));
    return {{std::move(round)}, 0};
}

/// Dissemination: in round k rank r tells r + 2^k and hears from r - 2^k; after it, it has heard of 2^(k+1) ranks.
///
/// Cost  ceil(log2 P) empty messages a rank.
inline Schedule barrier(int rank, int size) {
    Schedule schedule;
    for (int reach = 1; reach < size; reach *= 2) {
        Round& round = schedule.rounds.emplace_back();
        round.sends.push_back({(rank + reach) % size, {}});
        round.receives.push_back({(rank - reach + size) % size, {}});
    }
    return schedule;
}

} // namespace schedules

namespace detail {

/// Each rank's part of a validated all_gather or reduce_scatter of `whole` elements: as given, else equal.
inline std::vector<Index> parts_of(const Operation& operation, Index whole, int size) {
    return operation.parts.empty() ? std::vector<Index>(std::size_t(size), whole / size)
                                   : std::vector<Index>(operation.parts.begin(), operation.parts.end());
}

} // namespace detail

/// The schedule of one rank for a validated collective.
inline Schedule schedule(const Operation& operation, int rank, int size) {
    switch (operation.call) {
    case Call::all_reduce:
        return schedules::all_reduce(rank, size, operation.out_size, size_of(operation.type));
    case Call::all_gather:
        return schedules::all_gather(rank, size, detail::parts_of(operation, operation.out_size, size));
    case Call::reduce_scatter:
        return schedules::reduce_scatter(rank, size, detail::parts_of(operation, operation.in_size, size));
    case Call::broadcast:
        return schedules::broadcast(rank, size, operation.out_size, operation.peer);
    case Call::all_to_all:
        return schedules::all_to_all(rank, size, operation.parts, operation.in_parts);
    case Call::barrier:
        return schedules::barrier(rank, size);
    case Call::agree:
        return {};
    case Call::send:
    case Call::receive:
        break;
    }
    throw ArgumentError(concat(to_string(operation.call), " is a message, not a collective"));
}

} // namespace reigen::inline REIGEN_INSTRUCTION_SET
