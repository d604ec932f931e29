#pragma once

#include <reigen/comm/backend/backend.hpp>
#include <reigen/comm/collectives/schedule.hpp>

#include <bit>
#include <span>

namespace reigen::inline REIGEN_INSTRUCTION_SET {

namespace detail {

/// One message to each other rank whose part is not empty.
inline Traffic sends_of_parts(std::span<const Index> parts, int rank, Index element_bytes) {
    Traffic sent;
    for (int peer = 0; peer < int(parts.size()); ++peer)
        if (const Index part = parts[std::size_t(peer)]; peer != rank && part > 0)
            sent = sent + Traffic{1, part * element_bytes};
    return sent;
}

inline Traffic sends_of_equal_parts(Index part, int size, Index element_bytes) {
    return part > 0 ? Traffic{size - 1, (size - 1) * part * element_bytes} : Traffic{};
}

/// Slices that differ by at most one, larger first.
inline Traffic sends_of_all_reduce(Index count, int rank, int size, Index element_bytes) {
    if (schedules::is_one_shot(size, count * element_bytes))
        return count > 0 ? Traffic{1, count * element_bytes} : Traffic{};
    const Index mine = count / size + (rank < count % size ? 1 : 0);
    const Index slices = std::min<Index>(count, size); // that are not empty
    const Traffic scatter{slices - (mine > 0 ? 1 : 0), (count - mine) * element_bytes};
    return scatter + sends_of_equal_parts(mine, size, element_bytes);
}

inline Traffic sends_of_broadcast(Index bytes, int rank, int size, int root) {
    if (bytes == 0)
        return {};
    const int relative = (rank - root + size) % size;
    Index told = 0;
    for (auto reach = Index(std::bit_ceil(unsigned(relative) + 1)); relative + reach < size; reach *= 2)
        ++told;
    return {told, told * bytes};
}

} // namespace detail

/// What a rank sends in a validated collective by its `schedule`, whether messages carry it or not.
inline Traffic traffic_of(const Operation& operation, int rank, int size) {
    const Index width = size_of(operation.type);
    switch (operation.call) {
    case Call::all_reduce:
        return detail::sends_of_all_reduce(operation.out_size, rank, size, width);
    case Call::all_gather:
        return detail::sends_of_equal_parts(operation.in_size, size, width);
    case Call::reduce_scatter:
        return operation.parts.empty() ? detail::sends_of_equal_parts(operation.out_size, size, width)
                                       : detail::sends_of_parts(operation.parts, rank, width);
    case Call::broadcast:
        return detail::sends_of_broadcast(operation.out_size * width, rank, size, operation.peer);
    case Call::all_to_all:
        return detail::sends_of_parts(operation.parts, rank, width);
    case Call::barrier:
        return {std::bit_width(unsigned(size - 1)), 0};
    case Call::agree:
    case Call::send:
    case Call::receive:
        break;
    }
    return {};
}

} // namespace reigen::inline REIGEN_INSTRUCTION_SET
