#pragma once

#include <reigen/core/types.hpp>

#include <type_traits>

namespace reigen::inline REIGEN_INSTRUCTION_SET {

/// Vectors of `head_dim` contiguous elements, one for each (sequence, token, head), that somebody else owns.
///
/// The form in which queries, keys and values cross into the attention kernels: column blocks of a packed projection
/// and [batch, tokens, heads, head_dim] tensors are all this. Strides count elements.
template <class T>
struct HeadsView {
    T* data = nullptr;
    Index batch = 0;
    Index tokens = 0;
    Index heads = 0;
    Index head_dim = 0;
    Index batch_stride = 0;
    Index token_stride = 0;
    Index head_stride = 0;

    /// The vector of token t of sequence b in head h.
    T* at(Index b, Index t, Index h) const { return data + b * batch_stride + t * token_stride + h * head_stride; }

    Index size() const { return batch * tokens * heads * head_dim; }

    operator HeadsView<const T>() const
        requires(!std::is_const_v<T>)
    {
        return {data, batch, tokens, heads, head_dim, batch_stride, token_stride, head_stride};
    }
};

/// View of a dense [batch, tokens, heads, head_dim] array.
template <class T>
HeadsView<T> dense_heads(T* data, Index batch, Index tokens, Index heads, Index head_dim) {
    const Index token_stride = heads * head_dim;
    return {data, batch, tokens, heads, head_dim, tokens * token_stride, token_stride, head_dim};
}

} // namespace reigen::inline REIGEN_INSTRUCTION_SET
