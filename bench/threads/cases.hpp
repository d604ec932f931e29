#pragma once

#include <functional>
#include <string>
#include <vector>

/// Work that a kernel divides over threads.
struct ThreadsCase {
    std::string name;
    double flops; // of one run
    std::function<void()> run;
};

/// A case is made when its turn comes: arrays of all of them would take gigabytes.
std::vector<std::function<ThreadsCase()>> threads_cases();
