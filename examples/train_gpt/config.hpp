#pragma once

#include <train_gpt/model.hpp>
#include <train_gpt/options.hpp>

namespace train_gpt {

/// The model that the options describe.
inline GptConfig gpt_config(const Options& options) {
    return {.layers = options.layers,
            .width = options.width,
            .heads = options.heads,
            .kv_heads = options.kv_heads,
            .head_dim = options.width / options.heads,
            .hidden = options.hidden > 0 ? options.hidden : 4 * options.width,
            .dropout = options.dropout,
            .seed = options.seed};
}

inline reigen::SequenceLayout sequence_layout(const Options& options) {
    using reigen::SequenceLayout;
    for (const auto layout : {SequenceLayout::contiguous, SequenceLayout::zigzag, SequenceLayout::striped})
        if (options.layout == to_string(layout))
            return layout;
    throw reigen::ArgumentError(options.layout + " is no layout of a sequence");
}

inline reigen::WireType wire_type(const Options& options) {
    using reigen::WireType;
    for (const auto wire : {WireType::unchanged, WireType::bf16})
        if (options.wire == to_string(wire))
            return wire;
    throw reigen::ArgumentError(options.wire + " is no type of a wire");
}

} // namespace train_gpt
