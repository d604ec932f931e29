#pragma once

#include <reigen/comm/binding/bind.hpp>
#include <reigen/comm/launcher.hpp>
#include <reigen/core/buffer_source.hpp>
#include <reigen/core/error.hpp>

#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <set>
#include <string>
#include <vector>

namespace reigen::inline REIGEN_INSTRUCTION_SET::detail {

/// Where a thread may run, and where its memory lies.
struct Place {
    std::string host;
    Cores cores;
    std::vector<int> nodes; // of the memory beside these cores; none where the system does not tell
    Cores share_of;         // the cores that were divided among the ranks of the machine; none: as it was launched
    int launched = -1;      // its number by the launcher; -1 where there is none
    std::vector<int> pages; // memory nodes of pages of its long Buffers, a sample; none where the system does not tell
};

/// Up to so many pages of the long Buffers of a process that others can read are looked at.
inline constexpr std::size_t looks_at_pages = 256;

/// The calling thread's.
inline Place own_place() {
    Place place;
    char name[256] = "";
    gethostname(name, sizeof name - 1);
    place.host = name[0] != '\0' ? name : "?";
    place.cores = cores_of(allowed_set());
    place.launched = launcher() ? launcher()->rank() : -1;
    std::set<int> nodes;
    for (const int core : place.cores)
        if (const int node = memory_node_of(core); node >= 0)
            nodes.insert(node);
    place.nodes.assign(nodes.begin(), nodes.end());
    if (const Share& share = share_of_process(); share.own == place.cores) // nobody has bound it elsewhere since
        place.share_of = share.of;
    if (const BufferSource* const source = buffer_source.load(std::memory_order_acquire); source != nullptr)
        place.pages = memory_nodes_under(source->given(), looks_at_pages);
    return place;
}

/// "0-3, 8".
inline std::string to_ranges(const std::vector<int>& numbers) {
    std::string text;
    for (std::size_t first = 0, last; first < numbers.size(); first = last + 1) {
        for (last = first; last + 1 < numbers.size() && numbers[last + 1] == numbers[last] + 1;)
            ++last;
        text += concat(text.empty() ? "" : ", ", numbers[first]);
        if (last > first)
            text += concat('-', numbers[last]);
    }
    return text;
}

/// "node7  cores 0-3  memory node 0  its share of 0-15".
inline std::string to_string(const Place& place) {
    std::string text = concat(place.host, place.cores.size() == 1 ? "  core " : "  cores ", to_ranges(place.cores));
    if (!place.nodes.empty())
        text += concat(place.nodes.size() == 1 ? "  memory node " : "  memory nodes ", to_ranges(place.nodes));
    return text + (place.share_of.empty() ? "  as launched" : concat("  its share of ", to_ranges(place.share_of)));
}

/// As it travels: the host, the launcher's number, and each of the lists behind its length.
inline std::string to_text(const Place& place) {
    std::string text = concat(place.host, ' ', place.launched);
    for (const auto* const numbers : {&place.cores, &place.nodes, &place.share_of, &place.pages}) {
        text += concat(' ', numbers->size());
        for (const int number : *numbers)
            text += concat(' ', number);
    }
    return text;
}

inline Place place_of_text(const std::string& text) {
    Place place;
    const std::size_t behind_host = std::min(text.find(' '), text.size());
    place.host = text.substr(0, behind_host);
    const char* next = text.data() + behind_host;
    const auto number = [&] {
        int value = 0;
        next = std::from_chars(next + 1, text.data() + text.size(), value).ptr;
        return value;
    };
    place.launched = number();
    for (auto* const numbers : {&place.cores, &place.nodes, &place.share_of, &place.pages}) {
        numbers->resize(std::size_t(number()));
        std::ranges::generate(*numbers, number);
    }
    return place;
}

} // namespace reigen::inline REIGEN_INSTRUCTION_SET::detail
