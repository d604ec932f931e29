// What a user of the library writes in one file: two linear layers and ring attention, forward and backward, in float.
#include <reigen/reigen.hpp>

using namespace reigen;

namespace {
constexpr Placement residual = residual_on_every_rank;
using Column = ColumnParallelLinear<float, residual>;
using Row = RowParallelLinear<float, residual>;
} // namespace

Sharded<float, residual> two_layers(Column& up, Row& down, Sharded<float, residual> x,
                                    const Sharded<float, residual>& dy) {
    auto [hidden, saved_up] = up.forward(std::move(x));
    auto [y, saved_down] = down.forward(std::move(hidden));
    auto dhidden = down.backward(std::move(saved_down), dy);
    return up.backward(std::move(saved_up), dhidden);
}

Sharded<float, features_over_tp> attention(const Sharded<float, features_over_tp>& q,
                                           const Sharded<float, features_over_tp>& k,
                                           const Sharded<float, features_over_tp>& v, const Sequences& sequences) {
    return ring_attention(heads(q, sequences, 64), heads(k, sequences, 64), heads(v, sequences, 64)).out;
}

void attention_backward(const Sharded<float, features_over_tp>& q, const Sharded<float, features_over_tp>& k,
                        const Sharded<float, features_over_tp>& v, const Attended<float, features_over_tp>& attended,
                        const Sharded<float, features_over_tp>& dout, const Sequences& sequences,
                        Sharded<float, features_over_tp>& dq, Sharded<float, features_over_tp>& dk,
                        Sharded<float, features_over_tp>& dv) {
    const auto as_heads = [&](auto& x) { return heads(x, sequences, 64); };
    ring_attention_backward(as_heads(q), as_heads(k), as_heads(v), attended.out, attended.lse, dout, as_heads(dq),
                            as_heads(dk), as_heads(dv));
}
