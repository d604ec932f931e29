#include "threads/cases.hpp"

#include <reigen/core/random.hpp>
#include <reigen/core/strided.hpp>
#include <reigen/kernel/attention_backward.hpp>
#include <reigen/kernel/attention_forward.hpp>
#include <reigen/kernel/gemm.hpp>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <type_traits>
#include <vector>

using reigen::Accumulator;
using reigen::bfloat16;
using reigen::HeadsView;
using reigen::Index;
using reigen::Mask;
using reigen::Runs;
using reigen::Strided;

namespace {

template <class S>
constexpr const char* name_of = std::is_same_v<S, float>    ? "float"
                                : std::is_same_v<S, double> ? "double"
                                                            : "bfloat16";

template <class S>
std::vector<S> drawn(Index size, std::uint64_t stream) {
    const reigen::RandomStream random(1, stream);
    std::vector<S> numbers;
    for (Index i = 0; i < size; ++i)
        numbers.push_back(S(float(random.normal(i))));
    return numbers;
}

/// C = A B.
template <class S>
ThreadsCase gemm_case(Index m, Index n, Index k) {
    struct Arrays {
        std::vector<S> a, b, c;
    };
    const auto arrays = std::make_shared<Arrays>(Arrays{drawn<S>(m * k, 1), drawn<S>(k * n, 2), drawn<S>(m * n, 3)});
    const auto run = [=] {
        const Strided<const S> a = {arrays->a.data(), m, k, k, 1}, b = {arrays->b.data(), k, n, n, 1};
        const Strided<S> c = {arrays->c.data(), m, n, n, 1};
        reigen::gemm(Accumulator<S>(1), a, b, Accumulator<S>(0), c);
    };
    return {std::string("gemm/") + name_of<S> + '/' + std::to_string(m) + '/' + std::to_string(n) + '/' +
                std::to_string(k),
            2 * double(m) * double(n) * double(k), run};
}

/// Attention of some heads of head_dim 64, each with keys of its own.
template <class S>
struct Attention {
    static constexpr Index head_dim = 64;
    using T = Accumulator<S>;

    Index heads, queries, keys;
    Mask mask;
    std::vector<S> q = drawn<S>(heads * queries * head_dim, 1), k = drawn<S>(heads * keys * head_dim, 2),
                   v = drawn<S>(heads * keys * head_dim, 3), dout = drawn<S>(heads * queries * head_dim, 4), out = q,
                   dq = q;
    std::vector<T> dk = std::vector<T>(k.size()), dv = dk, lse = std::vector<T>(std::size_t(heads * queries));

    template <class X>
    HeadsView<X> view(std::vector<X>& numbers, Index tokens) const {
        return {numbers.data(), 1, tokens, heads, head_dim, 0, head_dim, tokens * head_dim};
    }
    Strided<T> lse_view() { return {lse.data(), queries, heads, heads, 1}; }
    Runs query_positions() const { return Runs::range(keys - queries, queries); }
    reigen::ScoreRule rule() const { return {1 / std::sqrt(double(head_dim)), mask, 0}; }

    void forward() {
        reigen::AttentionState<S> state(view(q, queries), query_positions(), heads, head_dim, rule());
        state.absorb(view(k, keys), view(v, keys), Runs::range(0, keys));
        state.finish(view(out, queries), lse_view());
    }

    void backward() {
        reigen::AttentionGradient<S> state({view(q, queries), view(out, queries), view(dout, queries), lse_view()},
                                           query_positions(), heads, rule());
        state.absorb(view(k, keys), view(v, keys), Runs::range(0, keys), view(dk, keys), view(dv, keys));
        state.finish(view(dq, queries));
    }

    /// Of one product of a head's queries and keys, without the pairs that do not see each other.
    double flops() const {
        const double pairs =
            mask == Mask::causal() && queries > 1 ? double(queries) * double(keys) / 2 : double(queries) * double(keys);
        return 2 * pairs * double(heads) * double(head_dim);
    }

    std::string sizes() const {
        return std::string("/") + name_of<S> + "/heads:" + std::to_string(heads) + "/N:" + std::to_string(keys) +
               "/d:" + std::to_string(head_dim);
    }
};

template <class S>
ThreadsCase forward_case(Index heads, Mask mask) {
    const auto arrays = std::make_shared<Attention<S>>(Attention<S>{heads, 4096, 4096, mask});
    return {"attention_forward" + arrays->sizes() + "/causal:" + (mask == Mask::causal() ? "1" : "0"),
            2 * arrays->flops(), [=] { arrays->forward(); }};
}

template <class S>
ThreadsCase backward_case(Index heads, Mask mask) {
    const auto arrays = std::make_shared<Attention<S>>(Attention<S>{heads, 4096, 4096, mask});
    arrays->forward();
    return {"attention_backward" + arrays->sizes() + "/causal:" + (mask == Mask::causal() ? "1" : "0"),
            5 * arrays->flops(), [=] { arrays->backward(); }};
}

template <class S>
ThreadsCase decode_case(Index heads) {
    const auto arrays = std::make_shared<Attention<S>>(Attention<S>{heads, 1, 32768, Mask::causal()});
    return {"decode" + arrays->sizes(), 2 * arrays->flops(), [=] { arrays->forward(); }};
}

} // namespace

std::vector<std::function<ThreadsCase()>> threads_cases() {
    return {
        [] { return gemm_case<float>(1024, 1024, 1024); },
        [] { return gemm_case<float>(512, 1024, 4096); },
        [] { return gemm_case<double>(1024, 1024, 1024); },
        [] { return gemm_case<bfloat16>(1024, 1024, 1024); },
        [] { return forward_case<float>(4, Mask::everything()); },
        [] { return forward_case<float>(4, Mask::causal()); },
        [] { return forward_case<float>(1, Mask::everything()); },
        [] { return forward_case<bfloat16>(4, Mask::everything()); },
        [] { return backward_case<float>(4, Mask::everything()); },
        [] { return backward_case<float>(4, Mask::causal()); },
        [] { return backward_case<float>(1, Mask::everything()); },
        [] { return backward_case<bfloat16>(4, Mask::everything()); },
        [] { return decode_case<float>(4); },
    };
}
