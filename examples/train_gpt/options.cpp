#include <train_gpt/options.hpp>

#include <support/checks.hpp>
#include <support/program.hpp>

#include <reigen/core/error.hpp>

#include <CLI/CLI.hpp>

namespace train_gpt {
namespace {

using examples::any_too_many;
using examples::at_least;
using examples::between;
using examples::not_empty;
using examples::one_of;
using examples::positive;
using examples::seed;
using examples::UsageError;
using reigen::concat;

/// Declares options that share a heading in --help.
class Group {
  public:
    Group(CLI::App& app, std::string heading) : app_(app), heading_(std::move(heading)) {}

    template <class T>
    CLI::Option* value(const std::string& name, T& target, const std::string& description) {
        return app_.add_option(name, target, description)->group(heading_)->capture_default_str();
    }

    void flag(const std::string& name, bool& target, const std::string& description) {
        app_.add_flag(name, target, description)->group(heading_);
    }

  private:
    CLI::App& app_;
    std::string heading_;
};

void declare_placement(CLI::App& app, Options& o) {
    Group group(app, "Text and mesh");
    group.value("--text", o.text, "Train on the bytes of this file; without it, on the library's own headers")
        ->type_name("FILE")
        ->check(not_empty("the name of a file"));
    group
        .value("--mesh", o.mesh,
               "Ranks along each axis, as dp=1,cp=2,tp=2: dp cuts the batch, cp each sequence, tp the model; an axis "
               "not named has one rank, tp the ranks that are left")
        ->type_name("AXES")
        ->check(not_empty("something like dp=1,cp=2,tp=2"));
    group.value("--layout", o.layout, "How cp cuts a sequence")->check(one_of({"contiguous", "zigzag", "striped"}));
    group.flag("--sequence-parallel", o.sequence_parallel, "Split the residual stream's tokens over tp as well");
    group
        .value(
            "--wire", o.wire,
            "Type in which keys and values travel over cp and, with --sequence-parallel, tokens over tp: as they are, "
            "or each rounded to bfloat16, by 1/256 of itself at most; sums travel as they are")
        ->check(one_of({"unchanged", "bfloat16"}));
}

void declare_model(CLI::App& app, Options& o) {
    Group group(app, "Model");
    group.value("--layers", o.layers, "Transformer blocks")->check(at_least(1));
    group.value("--width", o.width, "Features of a token")->check(at_least(1));
    group.value("--heads", o.heads, "Attention heads")->check(at_least(1));
    group.value("--kv-heads", o.kv_heads, "Key/value heads that they share")->check(at_least(1));
    group.value("--hidden", o.hidden, "Features inside the MLP; 0 is 4 x width")->check(at_least(0));
    group.value("--context", o.context, "Tokens of a sequence")->check(at_least(1));
    group.value("--dropout", o.dropout, "Part of the activations dropped in training")->check(between(0, 0.9));
    group.value("--dtype", o.dtype, "Scalar of weights and activations")->check(one_of({"float", "double"}));
}

void declare_training(CLI::App& app, Options& o) {
    Group group(app, "Training");
    group.value("--steps", o.steps, "Optimizer steps")->check(at_least(1));
    group.value("--batch", o.batch, "Sequences of a micro-batch, over all ranks")->check(at_least(1));
    group.value("--accumulate", o.accumulate, "Micro-batches whose gradients make one step")->check(at_least(1));
    group.value("--learning-rate", o.learning_rate, "Highest learning rate; falls to a tenth of it along a cosine")
        ->check(positive());
    group.value("--warm-up", o.warm_up, "Steps over which the learning rate rises")->check(at_least(0));
    group.value("--weight-decay", o.weight_decay, "AdamW's decay of the weight matrices")->check(at_least(0));
    group.value("--clip", o.clip, "Largest norm of the whole gradient; 0 is no limit")->check(at_least(0));
    group.value("--seed", o.seed, "Decides initial weights, batches, dropout and the sample")->check(seed());
}

void declare_results(CLI::App& app, Options& o) {
    Group group(app, "Results");
    group.value("--sample", o.sample, "Bytes of text to generate at the end")->check(at_least(0));
    group.value("--temperature", o.temperature, "Of the sample; 0 takes the likeliest byte")->check(at_least(0));
    group.value("--csv", o.csv, "Write step, loss and more to this file; '' writes none")->type_name("FILE");
    group.flag("--ledger", o.ledger, "Print every tensor's placement and local shapes");
    group
        .value("--audit", o.audit,
               "Ten times in the run, recompute this many random rows of the products and attentions in double and "
               "print the largest error; exit code 1 where it is above 1e-4 in float, 1e-12 in double")
        ->check(at_least(0))
        ->type_name("ROWS");
    group.flag("--verify", o.verify,
               "Also train the first 20 steps on one rank; exit code 1 unless the losses agree to 1e-4 in float, "
               "1e-10 in double");
}

} // namespace

void declare_options(CLI::App& app, Options& options) {
    declare_placement(app, options);
    declare_model(app, options);
    declare_training(app, options);
    declare_results(app, options);
}

void require_consistent(const Options& o) {
    const double hidden = o.hidden == 0 ? 4 * double(o.width) : double(o.hidden);
    const std::string wrong = any_too_many({
        {{"--batch", double(o.batch)}, {"--accumulate", double(o.accumulate)}, {"--context", double(o.context)}},
        {{"--layers", double(o.layers)}, {"--width", double(o.width)}, {"--hidden", hidden}},
        {{"--layers", double(o.layers)}, {"--width", double(o.width)}, {"--width", double(o.width)}},
        {{"--steps", double(o.steps)}},
        {{"--warm-up", double(o.warm_up)}},
        {{"--sample", double(o.sample)}},
        {{"--audit", double(o.audit)}},
    });
    if (!wrong.empty())
        throw UsageError(wrong);
    if (o.width % o.heads != 0)
        throw UsageError(concat("--width ", o.width, " does not divide into --heads ", o.heads));
    if (o.width / o.heads % 2 != 0)
        throw UsageError(concat("--width ", o.width, " over --heads ", o.heads, " gives heads of ", o.width / o.heads,
                                " features; rotary positions need an even number"));
    if (o.heads % o.kv_heads != 0)
        throw UsageError(concat("--heads ", o.heads, " cannot share --kv-heads ", o.kv_heads, " evenly"));
}

} // namespace train_gpt
