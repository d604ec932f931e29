#pragma once

#include <reigen/comm/binding/shares.hpp>

#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <span>
#include <vector>

// What Linux tells of cores and of where memory lies, and the one thing that is changed there.

namespace reigen::inline REIGEN_INSTRUCTION_SET::detail {

inline Cores cores_of(const cpu_set_t& set) {
    Cores cores;
    for (int core = 0; core < CPU_SETSIZE; ++core)
        if (CPU_ISSET(core, &set))
            cores.push_back(core);
    return cores;
}

inline cpu_set_t set_of(const Cores& cores) {
    cpu_set_t set;
    CPU_ZERO(&set);
    for (const int core : cores)
        CPU_SET(core, &set);
    return set;
}

/// Those that the calling thread may run on; none where the system does not tell.
inline cpu_set_t allowed_set() {
    cpu_set_t allowed;
    CPU_ZERO(&allowed);
    if (sched_getaffinity(0, sizeof allowed, &allowed) != 0)
        CPU_ZERO(&allowed);
    return allowed;
}

/// The memory that a core is beside; -1 where the system does not tell.
inline int memory_node_of(int core) {
    constexpr int most_nodes = 64;
    for (int node = 0; node < most_nodes; ++node)
        if (access(concat("/sys/devices/system/cpu/cpu", core, "/node", node).c_str(), F_OK) == 0)
            return node;
    return -1;
}

/// The first of the hardware threads of its physical core: itself where the system does not tell.
inline int physical_core_of(int core) {
    const std::string path = concat("/sys/devices/system/cpu/cpu", core, "/topology/thread_siblings_list");
    const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen(path.c_str(), "re"), &std::fclose);
    int first = core;
    char digits[16] = "";
    if (file != nullptr && std::fgets(digits, sizeof digits, file.get()) != nullptr && digits[0] >= '0' &&
        digits[0] <= '9')
        first = std::atoi(digits);
    return first;
}

inline std::vector<Core> described(const Cores& numbers) {
    std::vector<Core> cores;
    for (const int number : numbers)
        cores.push_back({number, physical_core_of(number), memory_node_of(number)});
    return cores;
}

/// The memory nodes of pages that are in use, as many as `looks` of those over which the memory extends; none where the
/// system does not tell. Touches nothing.
inline std::vector<int> memory_nodes_under(std::span<const std::byte> memory, std::size_t looks) {
    const auto page = std::size_t(sysconf(_SC_PAGESIZE));
    const std::size_t pages = memory.size() / page;
    looks = std::min(looks, pages);
    std::vector<const void*> at;
    for (std::size_t look = 0; look < looks; ++look)
        at.push_back(memory.data() + look * pages / looks * page);
    std::vector<int> found(at.size(), -1);
    // move_pages that is given no nodes only asks. NOLINTNEXTLINE(cppcoreguidelines-pro-type-vararg)
    if (at.empty() || syscall(SYS_move_pages, 0, at.size(), at.data(), nullptr, found.data(), 0) != 0)
        return {};
    std::erase_if(found, [](int node) { return node < 0; }); // pages that nobody has touched
    return found;
}

} // namespace reigen::inline REIGEN_INSTRUCTION_SET::detail
