#pragma once

#include "support/comparison.hpp"

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace peers::torch {

/// PyTorch runs in a process of its own, which takes a turn when it is asked to: `start` starts it, under the given
/// Python. Throws std::runtime_error where that one cannot load PyTorch.
void start(const std::string& python);

/// "PyTorch 2.15.0, MKL ...", or empty where it was not started.
std::string version();

/// An array that crosses as it lies in memory.
struct Array {
    std::string name;
    void* data;
    std::size_t bytes;
};

/// What PyTorch is to do: one of the tasks in torch_worker.py, in its words, on copies of these inputs.
struct Task {
    std::string words; // "gemm float 512 512 512 none 1"
    std::vector<Array> inputs;
    std::vector<Array> outputs; // written when the error is asked for
};

/// Empty where PyTorch was not started.
std::optional<bench::Contender> contender(const Task& task, const std::function<double()>& error);

} // namespace peers::torch
