#pragma once

#include <reigen/kernel/mask.hpp>

#include <numbers>

namespace reigen::inline REIGEN_INSTRUCTION_SET {

/// How queries score keys: scale q.k where the mask lets them, nothing elsewhere.
struct ScoreRule {
    double scale = 1;
    Mask mask = {};
    Index offset = 0; // Nk - Nq, of the global lengths

    /// What queries are multiplied by so that a score is the exponent of two.
    double scale_for_base_two() const { return scale * std::numbers::log2e; }
};

} // namespace reigen::inline REIGEN_INSTRUCTION_SET
