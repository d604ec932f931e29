#pragma once

#include "peers/product.hpp"

#include <string>

namespace peers::onednn {

/// "oneDNN 3.2.0", or empty where this program was built without it.
std::string version();

/// Whether B is read as it lies, or was brought into the order that oneDNN likes best, outside of what is timed.
enum class Weights { as_they_lie, reordered };

/// oneDNN's matmul on one thread, created outside of what is timed. Empty also where it has only a reference for a
/// type.
Multiplication multiplication(const Product<float>& product, Weights weights = Weights::as_they_lie);
Multiplication multiplication(const Product<reigen::bfloat16>& product, Weights weights = Weights::as_they_lie);

} // namespace peers::onednn
