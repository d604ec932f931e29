#pragma once

#include <reigen/comm/backend/operation.hpp>
#include <reigen/core/hash.hpp>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <sstream>
#include <string>
#include <string_view>
#include <type_traits>

namespace reigen::inline REIGEN_INSTRUCTION_SET::detail {

/// What all ranks of a group must call alike, in words: "all_gather of 7 float in parts of 3 2 2".
///
/// Parts that ranks have to themselves, as those of all_to_all, are left out: they are compared in pairs.
inline std::string claim_of(const Operation& operation) {
    switch (operation.call) {
    case Call::agree:
        return std::string(operation.claim);
    case Call::barrier:
        return "barrier";
    case Call::all_to_all:
        return concat("all_to_all of ", to_string(operation.type));
    default:
        break;
    }
    std::ostringstream out;
    const Index whole = operation.call == Call::all_gather ? operation.out_size : operation.in_size;
    out << to_string(operation.call) << " of " << whole << ' ' << to_string(operation.type);
    if (operation.call == Call::broadcast)
        out << " from rank " << operation.peer;
    if (operation.call == Call::all_reduce || operation.call == Call::reduce_scatter)
        out << ", " << to_string(operation.reduction);
    if (!operation.parts.empty()) {
        out << " in parts of";
        for (const Index part : operation.parts)
            out << ' ' << part;
    }
    return out.str();
}

/// One rank's claim as it travels: of one size, so that no rank needs to know another's words.
struct ClaimRecord {
    std::uint64_t group;  // the communicator, by the way it was split off
    std::uint64_t round;  // of its rank there
    std::uint64_t hash;   // of the whole text
    std::int64_t gives;   // all_to_all: elements to the rank that the record goes to
    std::int64_t takes;   // and from it
    std::uint64_t blocks; // whether its rank waits for nothing else
    char text[464];       // its beginning

    static ClaimRecord of(std::string_view claim) {
        ClaimRecord record = {};
        record.hash = (Hash() << claim).value();
        const std::size_t kept = std::min(claim.size(), sizeof record.text - 1);
        std::memcpy(record.text, claim.data(), kept);
        if (kept < claim.size())
            std::memcpy(record.text + kept - 3, "...", 3);
        return record;
    }
};
static_assert(sizeof(ClaimRecord) == 512 && std::is_trivially_copyable_v<ClaimRecord>);

} // namespace reigen::inline REIGEN_INSTRUCTION_SET::detail
