#include "families.hpp"
#include "support/comparison.hpp"

#include <reigen/core/random.hpp>
#include <reigen/kernel/attention_backward.hpp>
#include <reigen/kernel/attention_forward.hpp>

#include <cmath>
#include <string>
#include <vector>

using reigen::AttentionGradient;
using reigen::AttentionState;
using reigen::HeadsView;
using reigen::Index;
using reigen::Mask;
using reigen::Runs;
using reigen::ScoreRule;
using reigen::Strided;

namespace {

/// One head of N queries on N keys.
struct Case {
    Index tokens;
    Index head_dim;
    bool causal;

    std::string name(const std::string& kernel) const {
        return kernel + "/N:" + std::to_string(tokens) + "/d:" + std::to_string(head_dim) +
               "/causal:" + std::to_string(int(causal));
    }

    ScoreRule rule() const {
        return {1 / std::sqrt(double(head_dim)), causal ? Mask::causal() : Mask::everything(), 0};
    }

    /// Multiplications and additions of a product over all pairs that see each other.
    double product_flops() const {
        const double pairs = causal ? double(tokens) * double(tokens + 1) / 2 : double(tokens) * double(tokens);
        return 2 * pairs * double(head_dim);
    }
};

const Case cases[] = {{4096, 64, false}, {4096, 64, true}, {4096, 128, false}, {4096, 128, true}, {1024, 64, false},
                      {1024, 64, true},  {256, 64, false}, {256, 32, true},    {2048, 80, false}, {16384, 64, true}};

template <class T>
struct Tokens {
    Case of;
    std::vector<T> numbers;

    Tokens(Case of_, std::uint64_t stream) : of(of_), numbers(std::size_t(of_.tokens * of_.head_dim)) {
        const reigen::RandomStream random(1, stream);
        for (std::size_t i = 0; i < numbers.size(); ++i)
            numbers[i] = T(random.normal(Index(i)));
    }

    HeadsView<T> view() { return reigen::dense_heads(numbers.data(), 1, of.tokens, 1, of.head_dim); }
};

/// Everything that one pass, forward or backward, reads and writes.
template <class T>
struct Arrays {
    Case of;
    Tokens<T> q{of, 1}, k{of, 2}, v{of, 3}, dout{of, 4}, out{of, 5}, dq{of, 6}, dk{of, 7}, dv{of, 8};
    std::vector<T> lse = std::vector<T>(std::size_t(of.tokens));
    Runs positions = Runs::range(0, of.tokens);

    Strided<T> lse_view() { return {lse.data(), of.tokens, 1, 1, 1}; }

    void forward() {
        AttentionState<T> state(q.view(), positions, 1, of.head_dim, of.rule());
        state.absorb(k.view(), v.view(), positions);
        state.finish(out.view(), lse_view());
    }

    void backward() {
        AttentionGradient<T> state({q.view(), out.view(), dout.view(), lse_view()}, positions, 1, of.rule());
        state.absorb(k.view(), v.view(), positions, dk.view(), dv.view());
        state.finish(dq.view());
    }
};

template <class T>
void attention_forward(benchmark::State& state, Case of) {
    Arrays<T> arrays{of};
    bench::compare<T>(state, 2 * of.product_flops(), [&] { arrays.forward(); }, {});
}

template <class T>
void attention_backward(benchmark::State& state, Case of) {
    Arrays<T> arrays{of};
    arrays.forward();
    bench::compare<T>(state, 5 * of.product_flops(), [&] { arrays.backward(); }, {});
}

void register_case(const std::string& name, void (*run)(benchmark::State&, Case), Case of) {
    benchmark::RegisterBenchmark(of.name(name).c_str(), [=](benchmark::State& state) { run(state, of); })
        ->UseManualTime()
        ->Unit(benchmark::kMicrosecond);
}

} // namespace

void register_attention() {
    for (const Case& of : cases)
        register_case("attention_forward/float", attention_forward<float>, of);
    register_case("attention_forward/double", attention_forward<double>, {2048, 64, false});
    for (const Case& of : cases)
        register_case("attention_backward/float", attention_backward<float>, of);
    register_case("attention_backward/double", attention_backward<double>, {2048, 64, false});
}
