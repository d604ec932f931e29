#pragma once

#include <reigen/core/strided.hpp>
#include <reigen/core/types.hpp>

#include <functional>

namespace peers {

/// C = A B, whose factors may be transposed views; C is row-major. The memory is somebody else's.
template <class T>
struct Product {
    reigen::Strided<const T> a, b;
    reigen::Strided<T> c;
};

/// One multiplication, prepared; empty where the peer is not here or has no such product.
using Multiplication = std::function<void()>;

} // namespace peers
