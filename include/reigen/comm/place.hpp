#pragma once

#include <reigen/core/error.hpp>

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <set>
#include <string>
#include <vector>

namespace reigen::inline REIGEN_INSTRUCTION_SET::detail {

/// Where a thread may run.
struct Place {
    std::string host;
    std::vector<int> cores; // ascending
    std::vector<int> nodes; // of the memory beside these cores; none where the system does not tell
};

/// The memory that a core is beside, as Linux tells; -1 where it does not.
inline int memory_node_of(int core) {
    constexpr int most_nodes = 64;
    for (int node = 0; node < most_nodes; ++node)
        if (access(concat("/sys/devices/system/cpu/cpu", core, "/node", node).c_str(), F_OK) == 0)
            return node;
    return -1;
}

/// The calling thread's.
inline Place own_place() {
    Place place;
    char name[256] = "";
    gethostname(name, sizeof name - 1);
    place.host = name[0] != '\0' ? name : "?";
    cpu_set_t allowed;
    CPU_ZERO(&allowed);
    if (sched_getaffinity(0, sizeof allowed, &allowed) == 0)
        for (int core = 0; core < CPU_SETSIZE; ++core)
            if (CPU_ISSET(core, &allowed))
                place.cores.push_back(core);
    std::set<int> nodes;
    for (const int core : place.cores)
        if (const int node = memory_node_of(core); node >= 0)
            nodes.insert(node);
    place.nodes.assign(nodes.begin(), nodes.end());
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

/// "node7  cores 0-3  memory node 0".
inline std::string to_string(const Place& place) {
    std::string text = concat(place.host, place.cores.size() == 1 ? "  core " : "  cores ", to_ranges(place.cores));
    if (!place.nodes.empty())
        text += concat(place.nodes.size() == 1 ? "  memory node " : "  memory nodes ", to_ranges(place.nodes));
    return text;
}

/// As it travels: the host, how many cores, the cores, the nodes.
inline std::string to_text(const Place& place) {
    std::string text = concat(place.host, ' ', place.cores.size());
    for (const std::vector<int>* const numbers : {&place.cores, &place.nodes})
        for (const int number : *numbers)
            text += concat(' ', number);
    return text;
}

inline Place place_of_text(const std::string& text) {
    Place place;
    const std::size_t behind_host = std::min(text.find(' '), text.size());
    place.host = text.substr(0, behind_host);
    std::vector<int> numbers;
    const char* const end = text.data() + text.size();
    for (const char* next = text.data() + behind_host; next != end;) {
        const auto [behind, error] = std::from_chars(next + 1, end, numbers.emplace_back(0));
        next = behind;
    }
    const auto cores = numbers.begin() + 1;
    place.cores.assign(cores, cores + numbers.front());
    place.nodes.assign(cores + numbers.front(), numbers.end());
    return place;
}

} // namespace reigen::inline REIGEN_INSTRUCTION_SET::detail
