#pragma once

#include <reigen/comm/collectives/part_sizes.hpp>
#include <reigen/comm/communicator.hpp>

#include <array>
#include <string>
#include <string_view>
#include <vector>

namespace reigen::inline REIGEN_INSTRUCTION_SET {

/// The texts of all ranks, on every rank, in rank order. Collective.
///
/// Cost    as two all-gathers: of one number from each rank, and of the texts
/// Throws  as `all_gather`: TimeoutError, PeerError, CommunicationError; under checks DisagreementError on every rank
inline std::vector<std::string> all_gather_texts(const Communicator& ranks, std::string_view mine) {
    std::vector<Index> sizes(std::size_t(ranks.size()));
    ranks.all_gather(std::array{Index(mine.size())}, sizes);
    std::string all(std::size_t(detail::sum_of(sizes)), '\0');
    ranks.all_gather(mine, all, sizes);
    std::vector<std::string> texts;
    auto next = all.begin();
    for (const Index size : sizes) {
        texts.emplace_back(next, next + size);
        next += size;
    }
    return texts;
}

} // namespace reigen::inline REIGEN_INSTRUCTION_SET
