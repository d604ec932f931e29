#include <ring_attention/options.hpp>

#include <support/checks.hpp>
#include <support/program.hpp>

namespace ring_attention {

reigen::SequenceLayout Options::sequence_layout() const {
    return layout == "zigzag"    ? reigen::SequenceLayout::zigzag
           : layout == "striped" ? reigen::SequenceLayout::striped
                                 : reigen::SequenceLayout::contiguous;
}

reigen::Mask Options::band() const {
    return mask == "causal"   ? reigen::Mask::causal()
           : mask == "window" ? reigen::Mask::window(window.value_or(4), ahead.value_or(0))
                              : reigen::Mask::everything();
}

void add_options(CLI::App& app, Options& options) {
    using examples::at_least, examples::one_of, examples::seed;
    const auto number = [&](const char* name, Index& value, double least, const char* text) {
        app.add_option(name, value, text)->check(at_least(least))->capture_default_str();
    };
    const auto word = [&](const char* name, std::string& value, std::vector<std::string> words, const char* text) {
        app.add_option(name, value, text)->check(one_of(std::move(words)))->capture_default_str();
    };
    number("--tokens", options.tokens, 1, "Length of each sequence");
    number("--batch", options.batch, 1, "Sequences");
    number("--heads", options.heads, 1, "Query heads");
    number("--kv-heads", options.kv_heads, 1, "Key and value heads, each shared by a group of query heads");
    number("--head-dim", options.head_dim, 1, "Numbers in a head");
    word("--layout", options.layout, {"contiguous", "zigzag", "striped"}, "Which positions a rank holds");
    app.add_option("--stripe", options.stripe, "Tokens in a stripe of the striped layout; 1 if not given")
        ->check(at_least(1));
    word("--mask", options.mask, {"everything", "causal", "window"}, "Which keys a query sees");
    app.add_option("--window", options.window, "With --mask window: keys seen before the query's own; 4 if not given")
        ->check(at_least(0));
    app.add_option("--ahead", options.ahead, "With --mask window: keys seen after the query's own; 0 if not given")
        ->check(at_least(0));
    word("--dtype", options.dtype, {"float", "double"}, "Numbers to compute with");
    app.add_flag("--backward", options.backward, "Gradients as well");
    app.add_flag("--no-reference", options.no_reference, "Leave out the comparison with the slow reference");
    number(
        "--audit", options.audit, 0,
        "Recompute so many random rows of the output in double across the ranks, where the whole reference would take "
        "too long; 0 is none");
    app.add_option("--seed", options.seed, "Of the random queries, keys and values")
        ->check(seed())
        ->capture_default_str();
}

void check(const Options& options) {
    const std::string wrong = examples::any_too_many({
        {{"--batch", double(options.batch)},
         {"--tokens", double(options.tokens)},
         {"--heads", double(options.heads)},
         {"--head-dim", double(options.head_dim)}},
        {{"--audit", double(options.audit)}},
        {{"--stripe", double(options.stripe.value_or(0))}},
        {{"--window", double(options.window.value_or(0))}},
        {{"--ahead", double(options.ahead.value_or(0))}},
    });
    if (!wrong.empty())
        throw examples::UsageError(wrong);
    if (options.heads % options.kv_heads != 0)
        throw examples::UsageError(reigen::concat("--heads ", options.heads, " cannot be grouped over --kv-heads ",
                                                  options.kv_heads, ": want a multiple"));
    if ((options.window || options.ahead) && options.mask != "window")
        throw examples::UsageError("--window and --ahead mean something with --mask window only");
    if (options.stripe && options.layout != "striped")
        throw examples::UsageError("--stripe means something with --layout striped only");
}

} // namespace ring_attention
