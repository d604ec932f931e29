#pragma once

#include "peers/product.hpp"

#include <string>

namespace peers::openblas {

/// "OpenBLAS 0.3.21, Zen kernels", or empty where this machine has none. Loaded when first asked for, and told to use
/// one thread.
const std::string& version();

Multiplication multiplication(const Product<float>& product);
Multiplication multiplication(const Product<double>& product);

} // namespace peers::openblas
