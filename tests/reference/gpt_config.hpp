#pragma once

#include "reference/matrix.hpp"

#include <optional>

namespace reference {

struct GptConfig {
    Index layers = 2;
    Index width = 12;
    Index heads = 4;
    Index kv_heads = 2;
    Index head_dim = 4;
    Index hidden = 10;
    Index vocabulary = 11;
    bool swiglu = false;
    bool rms_norm = false;
    bool tied = false;
    std::optional<Index> window = std::nullopt; // keys back, the query's own position not counted; none = plain causal
    double norm_epsilon = 1e-5;
    double rotary_base = 10000;
    double smoothing = 0;
    Index ignored_label = -100;
};

} // namespace reference
