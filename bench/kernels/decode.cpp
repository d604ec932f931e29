#include "families.hpp"
#include "peers/torch.hpp"
#include "support/comparison.hpp"
#include "support/error.hpp"
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

/// The output in double.
template <class S>
std::vector<double> exact_output(const Arrays<S>& arrays) {
    Arrays<double> wide{arrays.of};
    wide.q.assign(arrays.q.begin(), arrays.q.end());
    wide.k.assign(arrays.k.begin(), arrays.k.end());
    wide.v.assign(arrays.v.begin(), arrays.v.end());
    wide.run();
    return wide.out;
}

template <class S>
double error_of(const std::vector<S>& out, const std::vector<double>& exact) {
    bench::LargestError error;
    for (std::size_t i = 0; i < exact.size(); ++i)
        error.add(double(out[i]), exact[i]);
    return error.value();
}

/// PyTorch's scaled_dot_product_attention.
template <class S>
peers::torch::Task torch_task(Arrays<S>& arrays) {
    const auto array = [](const char* name, std::vector<S>& numbers) {
        return peers::torch::Array{name, numbers.data(), numbers.size() * sizeof(S)};
    };
    const Case& of = arrays.of;
    return {std::string("decode ") + bench::name_of<S> + ' ' + std::to_string(of.keys) + ' ' +
                std::to_string(of.query_heads) + ' ' + std::to_string(of.key_heads) + ' ' + std::to_string(of.head_dim),
            {array("q", arrays.q), array("k", arrays.k), array("v", arrays.v)},
            {array("out", arrays.out)}};
}

template <class S>
bench::Row decode_row(Case of) {
    const auto ours = std::make_shared<Arrays<S>>(Arrays<S>{of});
    const auto theirs = std::make_shared<Arrays<S>>(*ours);
    const auto exact = std::make_shared<std::vector<double>>(exact_output(*ours));
    const auto error = [exact](const auto& arrays) { return [=] { return error_of(arrays->out, *exact); }; };
    bench::Row row{of.flops(), bench::multiply_add_peak<Accumulator<S>>,
                   bench::on_this_thread("", [=] { ours->run(); }, error(ours))};
    row.streamed_bytes = of.numbers() * sizeof(S);
    if (const auto torch = peers::torch::contender(torch_task(*theirs), error(theirs)))
        row.peers.push_back(*torch);
    return row;
}

template <class S>
void register_case(Case of) {
    bench::register_row(std::string("decode/") + bench::name_of<S> + of.sizes(), [=] { return decode_row<S>(of); });
}

} // namespace

void register_decode() {
    for (const Case& of : {Case{32768, 16, 2, 128}, {32768, 2, 2, 128}, {32768, 32, 4, 64}, {32768, 4, 4, 64}}) {
        register_case<float>(of);
        register_case<reigen::bfloat16>(of);
    }
}
