#pragma once

#include <reigen/comm/communicator.hpp>
#include <reigen/comm/mesh.hpp>

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace overlap {

using reigen::Index;

/// One step of a model, set up on all ranks, in four ways. Every run is the same work on the same data.
class Work {
  public:
    virtual ~Work() = default;

    /// As the library does it: messages travel under computing. Collective.
    virtual void overlapped() = 0;

    /// First one, then the other. Collective.
    virtual void plain() = 0;

    /// What this rank computes of it, without a message.
    virtual void computing() = 0;

    /// All of it on this rank.
    virtual void whole() = 0;
};

/// One row of the table.
struct Case {
    std::string name;
    std::function<std::unique_ptr<Work>(const reigen::Communicator& world)> make; // collective over the world
};

/// The row of a `W` made of a mesh with all ranks on one axis, and of `settings`.
template <class W, class... Settings>
Case case_over(reigen::Axes axis, std::string name, Settings... settings) {
    return {std::move(name), [=](const reigen::Communicator& world) {
                return std::make_unique<W>(reigen::Mesh(world, {{axis, world.size()}}), settings...);
            }};
}

struct MlpSizes {
    Index tokens = 512;
    Index width = 1024;
    Index hidden = 4096;
};

struct AttentionSizes {
    Index length = 8192;
    Index heads = 8;
    Index head_dim = 64;
};

/// Two linear layers with GELU between them, forward and backward, for both places of the residual stream.
std::vector<Case> mlp_cases(const MlpSizes& sizes, int ranks);

/// One token through the products of a decoder's layer, with packed weights.
std::vector<Case> decode_cases(Index hidden, int ranks);

/// `matmul_same_bits` of the MLP's second layer; plain is the product and its sum.
std::vector<Case> same_bits_cases(const MlpSizes& sizes, int ranks);

/// Causal attention over a ring in the zigzag layout: forward, and forward and backward, with keys and values as
/// they are on the wire and as bfloat16.
std::vector<Case> ring_attention_cases(const AttentionSizes& sizes, int ranks);

} // namespace overlap
