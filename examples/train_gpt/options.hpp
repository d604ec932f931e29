#pragma once

#include <reigen/core/types.hpp>

#include <cstdint>
#include <string>

namespace CLI {
class App;
}

namespace train_gpt {

using reigen::Index;

/// Everything the command line decides, with the values of the default run.
struct Options {
    // what is read
    std::string text; // empty: the library's own headers

    // how it is spread over the ranks
    std::string mesh; // empty: tp = all ranks
    std::string layout = "contiguous";
    bool sequence_parallel = false;
    std::string wire = "unchanged"; // of keys and values, and of tokens that are split over tp

    // the model
    Index layers = 4;
    Index width = 256;
    Index heads = 8;
    Index kv_heads = 4;
    Index hidden = 0; // 0: 4 x width
    Index context = 256;
    double dropout = 0;
    std::string dtype = "float";

    // the training
    Index steps = 600;
    Index batch = 4;      // sequences of one micro-batch, over all ranks
    Index accumulate = 1; // micro-batches of one step
    double learning_rate = 2e-3;
    Index warm_up = 10;
    double weight_decay = 0.1;
    double clip = 1;
    std::uint64_t seed = 1;

    // what comes out
    Index sample = 200; // bytes
    double temperature = 0.7;
    std::string csv = "loss.csv";
    bool ledger = false;
    bool verify = false;
    Index audit = 0; // rows; 0: none

    Index tokens_per_step() const { return batch * accumulate * context; }
};

/// Declares them all, each with its default.
void declare_options(CLI::App& app, Options& options);

/// Throws UsageError where options do not fit together.
void require_consistent(const Options& options);

} // namespace train_gpt
