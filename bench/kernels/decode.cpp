#include "families.hpp"
#include "support/comparison.hpp"
#include "support/type_name.hpp"

#include <reigen/core/random.hpp>
#include <reigen/kernel/attention_forward.hpp>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

using reigen::Accumulator;
using reigen::HeadsView;
using reigen::Index;
using reigen::Runs;

namespace {

/// One query on many keys, in so many query heads to a key head.
struct Case {
    Index keys;
    Index query_heads;
    Index key_heads;
    Index head_dim;

    /// "/keys:32768/heads:16on2/d:128"
    std::string sizes() const {
        return "/keys:" + std::to_string(keys) + "/heads:" + std::to_string(query_heads) + "on" +
               std::to_string(key_heads) + "/d:" + std::to_string(head_dim);
    }

    double flops() const { return 4 * double(keys) * double(query_heads) * double(head_dim); }
    double numbers() const { return 2 * double(keys) * double(key_heads) * double(head_dim); }
};

template <class S>
struct Arrays {
    Case of;
    std::vector<S> q = drawn(1, of.query_heads, 1), k = drawn(of.keys, of.key_heads, 2),
                   v = drawn(of.keys, of.key_heads, 3), out = q;
    std::vector<Accumulator<S>> lse = std::vector<Accumulator<S>>(std::size_t(of.query_heads));
    Runs query = Runs::range(of.keys - 1, 1), positions = Runs::range(0, of.keys);

    std::vector<S> drawn(Index tokens, Index heads, std::uint64_t stream) const {
        std::vector<S> numbers(std::size_t(tokens * heads * of.head_dim));
        const reigen::RandomStream random(1, stream);
        for (std::size_t i = 0; i < numbers.size(); ++i)
            numbers[i] = S(float(random.normal(Index(i))));
        return numbers;
    }

    /// [heads, tokens, head_dim]: what one head needs lies together.
    HeadsView<S> view(std::vector<S>& numbers, Index heads) const {
        const Index tokens = Index(numbers.size()) / (heads * of.head_dim);
        return {numbers.data(), 1, tokens, heads, of.head_dim, 0, of.head_dim, tokens * of.head_dim};
    }

    void run() {
        reigen::AttentionState<S> state(view(q, of.query_heads), query, of.key_heads, of.head_dim,
                                        {1 / std::sqrt(double(of.head_dim)), reigen::Mask::causal(), 0});
        state.absorb(view(k, of.key_heads), view(v, of.key_heads), positions);
        state.finish(view(out, of.query_heads), {lse.data(), 1, of.query_heads, of.query_heads, 1});
    }
};

template <class S>
void register_case(Case of) {
    bench::register_row(std::string("decode/") + bench::name_of<S> + of.sizes(), [=] {
        const auto arrays = std::make_shared<Arrays<S>>(Arrays<S>{of});
        bench::Row row{of.flops(), bench::multiply_add_peak<Accumulator<S>>,
                       bench::on_this_thread("", [=] { arrays->run(); })};
        row.streamed_bytes = of.numbers() * sizeof(S);
        return row;
    });
}

} // namespace

void register_decode() {
    for (const Case& of : {Case{32768, 16, 2, 128}, {32768, 2, 2, 128}, {32768, 32, 4, 64}, {32768, 4, 4, 64}}) {
        register_case<float>(of);
        register_case<reigen::bfloat16>(of);
    }
}
