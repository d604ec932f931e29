#pragma once

#include "comm/values.hpp"

#include <reigen/comm/faulty.hpp>
#include <reigen/comm/trace.hpp>

#include <chrono>
#include <string>
#include <thread>

namespace trace_cases {

using reigen::TraceCost;
using reigen::TraceSummary;

inline void sleep_ms(int milliseconds) {
    std::this_thread::sleep_for(std::chrono::milliseconds(milliseconds));
}

/// The same ranks, whose collectives are made of messages.
inline reigen::Communicator messages_alone(const reigen::Communicator& ranks) {
    return faulty(ranks, {});
}

/// What a rank did in one row; nothing where there is no such row.
inline TraceCost cost(const TraceSummary& summary, const std::string& operation, const std::string& over, int rank) {
    const auto* const row = summary.find(operation, over);
    return row != nullptr ? row->ranks[std::size_t(rank)] : TraceCost{};
}

} // namespace trace_cases
