#pragma once

#include "peers/torch.hpp"
#include "support/error.hpp"

#include <reigen/attention/own_gradients.hpp>
#include <reigen/core/random.hpp>
#include <reigen/kernel/attention_backward.hpp>
#include <reigen/kernel/attention_forward.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

enum class Pass { forward, backward };

/// One head of N queries on N keys.
struct AttentionCase {
    reigen::Index tokens;
    reigen::Index head_dim;
    bool causal;

    /// "/N:4096/d:64/causal:0"
    std::string sizes() const {
        return "/N:" + std::to_string(tokens) + "/d:" + std::to_string(head_dim) +
               "/causal:" + std::to_string(int(causal));
    }

    reigen::ScoreRule rule() const {
        return {1 / std::sqrt(double(head_dim)), causal ? reigen::Mask::causal() : reigen::Mask::everything(), 0};
    }

    /// Multiplications and additions over all pairs that see each other: two products forward, five backward.
    double flops(Pass pass) const {
        const double pairs = causal ? double(tokens) * double(tokens + 1) / 2 : double(tokens) * double(tokens);
        return (pass == Pass::forward ? 2 : 5) * 2 * pairs * double(head_dim);
    }
};

/// A [tokens, head_dim] array.
template <class T>
struct Tokens {
    std::string name;
    AttentionCase of;
    std::vector<T> numbers = std::vector<T>(std::size_t(of.tokens * of.head_dim));

    void draw(std::uint64_t stream) {
        const reigen::RandomStream random(1, stream);
        for (std::size_t i = 0; i < numbers.size(); ++i)
            numbers[i] = T(random.normal(reigen::Index(i)));
    }

    reigen::HeadsView<T> view() { return reigen::dense_heads(numbers.data(), 1, of.tokens, 1, of.head_dim); }
    peers::torch::Array array() { return {name, numbers.data(), numbers.size() * sizeof(T)}; }
};

/// Everything that one pass, forward or backward, reads and writes.
template <class T>
struct AttentionArrays {
    using Sum = reigen::Accumulator<T>;

    AttentionCase of;
    Tokens<T> q{"q", of}, k{"k", of}, v{"v", of}, dout{"dout", of}, out{"out", of}, dq{"dq", of}, dk{"dk", of},
        dv{"dv", of};
    std::vector<Sum> lse = std::vector<Sum>(std::size_t(of.tokens));
    reigen::Runs positions = reigen::Runs::range(0, of.tokens);

    std::vector<Tokens<T>*> inputs() { return {&q, &k, &v, &dout}; }

    std::vector<Tokens<T>*> results(Pass pass) {
        return pass == Pass::forward ? std::vector{&out} : std::vector{&dq, &dk, &dv};
    }

    void draw() {
        for (std::uint64_t stream = 1; Tokens<T> * tokens : inputs())
            tokens->draw(stream++);
    }

    void run(Pass pass) { pass == Pass::forward ? forward() : backward(); }

    void forward() {
        reigen::AttentionState<T> state(q.view(), positions, 1, of.head_dim, of.rule());
        state.absorb(k.view(), v.view(), positions);
        state.finish(out.view(), lse_view());
    }

    void backward() {
        const reigen::detail::OwnGradients<T> dk_sum(dk.view()), dv_sum(dv.view());
        reigen::AttentionGradient<T> state({q.view(), out.view(), dout.view(), lse_view()}, positions, 1, of.rule());
        state.absorb(k.view(), v.view(), positions, dk_sum.sum(), dv_sum.sum());
        state.finish(dq.view());
        dk_sum.finish();
        dv_sum.finish();
    }

    /// The same in double, which results are compared with; the tests compare that kernel with the textbook's formula.
    AttentionArrays<double> exact(Pass pass) {
        AttentionArrays<double> wide{of};
        for (std::size_t i = 0; i < inputs().size(); ++i)
            std::copy(inputs()[i]->numbers.begin(), inputs()[i]->numbers.end(), wide.inputs()[i]->numbers.begin());
        wide.forward();
        if (pass == Pass::backward)
            wide.backward();
        return wide;
    }

  private:
    reigen::Strided<Sum> lse_view() { return {lse.data(), of.tokens, 1, 1, 1}; }
};

/// The largest error of a pass's results, each of them in units of its own largest value.
template <class T>
double attention_error(AttentionArrays<T>& arrays, AttentionArrays<double>& exact, Pass pass) {
    double largest = 0;
    for (std::size_t r = 0; r < arrays.results(pass).size(); ++r) {
        bench::LargestError error;
        for (std::size_t i = 0; i < exact.out.numbers.size(); ++i)
            error.add(double(arrays.results(pass)[r]->numbers[i]), exact.results(pass)[r]->numbers[i]);
        largest = std::isnan(error.value()) ? error.value() : std::max(error.value(), largest);
    }
    return largest;
}
