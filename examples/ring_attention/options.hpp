#pragma once

#include <reigen/kernel/mask.hpp>
#include <reigen/layout/sequence.hpp>

#include <CLI/CLI.hpp>

#include <cstdint>
#include <optional>
#include <string>

namespace ring_attention {

using reigen::Index;

/// One attention over a ring: what to compute, in which numbers, how divided.
struct Options {
    Index tokens = 16;
    Index batch = 1;
    Index heads = 4;
    Index kv_heads = 2;
    Index head_dim = 16;
    std::string layout = "zigzag";
    std::optional<Index> stripe; // with the striped layout
    std::string mask = "causal";
    std::optional<Index> window, ahead; // with the window mask
    std::string dtype = "float";
    bool backward = false;
    bool no_reference = false;
    Index audit = 0; // rows; 0: none
    std::uint64_t seed = 1;

    reigen::SequenceLayout sequence_layout() const;
    reigen::Mask band() const;
};

/// Declares the options; parsing sets them.
void add_options(CLI::App& app, Options& options);

/// Throws UsageError where options do not combine.
void check(const Options& options);

} // namespace ring_attention
