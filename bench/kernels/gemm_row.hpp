#pragma once

#include "gemm_inputs.hpp"
#include "peers/eigen.hpp"
#include "peers/onednn.hpp"
#include "peers/openblas.hpp"
#include "peers/product.hpp"
#include "peers/torch.hpp"
#include "support/comparison.hpp"

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

template <class T>
using SharedGemmInputs = std::shared_ptr<const GemmInputs<T>>;

/// How somebody multiplies: prepares one product, and returns what carries it out. Empty where he cannot.
template <class T>
using Multiplier = std::function<peers::Multiplication(const peers::Product<T>&)>;

/// Somebody who multiplies on this thread, into memory of his own.
template <class T>
std::optional<bench::Contender> gemm_contender(const std::string& name, const SharedGemmInputs<T>& inputs,
                                               const Multiplier<T>& multiplier) {
    const auto c = std::make_shared<reigen::RowMatrix<T>>(inputs->shape().m, inputs->shape().n);
    std::vector<peers::Multiplication> in_turn;
    for (const auto& b : inputs->b()) {
        in_turn.push_back(multiplier({inputs->a(), b, reigen::strided(*c)}));
        if (!in_turn.back())
            return std::nullopt;
    }
    const auto run = [in_turn, next = std::size_t(0)]() mutable {
        in_turn[next]();
        next = (next + 1) % in_turn.size();
    };
    return bench::on_this_thread(name, run, [=] { return inputs->error_of(*c); });
}

/// PyTorch's torch.mm.
template <class T>
std::optional<bench::Contender> torch_contender(const SharedGemmInputs<T>& inputs) {
    const auto c = std::make_shared<reigen::RowMatrix<T>>(inputs->shape().m, inputs->shape().n);
    return peers::torch::contender(inputs->torch_task(*c), [=] { return inputs->error_of(*c); });
}

/// Our way to multiply and everybody else's. oneDNN's weights may be reordered where ours are packed.
template <class T>
bench::Row gemm_row(const GemmShape& shape, const Multiplier<T>& ours,
                    peers::onednn::Weights weights = peers::onednn::Weights::as_they_lie) {
    const auto inputs = std::make_shared<const GemmInputs<T>>(shape);
    bench::Row row{shape.flops(), bench::multiply_add_peak<T>, *gemm_contender<T>("", inputs, ours)};
    if (shape.streams_weights)
        row.streamed_bytes = double(shape.n) * double(shape.k) * sizeof(T);
    const auto add = [&](std::optional<bench::Contender> peer) {
        if (peer)
            row.peers.push_back(std::move(*peer));
    };
    add(gemm_contender<T>("eigen", inputs, peers::eigen::multiplication<T>));
    if constexpr (!std::is_same_v<T, double>)
        add(gemm_contender<T>("onednn", inputs,
                              [=](const auto& p) { return peers::onednn::multiplication(p, weights); }));
    if constexpr (!std::is_same_v<T, reigen::bfloat16>)
        add(gemm_contender<T>("openblas", inputs, [](const auto& p) { return peers::openblas::multiplication(p); }));
    add(torch_contender<T>(inputs));
    return row;
}
