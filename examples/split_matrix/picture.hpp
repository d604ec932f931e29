#pragma once

#include <reigen/layout/partition.hpp>

#include <string>
#include <vector>

namespace split_matrix {

using reigen::Index;
using Matrix = reigen::RowMatrix<double>;

/// Lines of text, one below the other.
using Picture = std::vector<std::string>;

/// A matrix with a line wherever the next rank's part begins, and whose part it is: r0, r1, ...
///
///     [ 1 0 | 1 2 ]          [ 1 0 1 2 ] r0
///     [ 0 1 | 3 4 ]          -----------
///       r0    r1             [ 0 1 3 4 ] r1
Picture picture_of(const Matrix& matrix, const reigen::Partition& rows, const reigen::Partition& cols);

/// Pictures side by side, each after its own "name = ", for instance "X = ".
std::string side_by_side(const std::vector<std::string>& names, const std::vector<Picture>& pictures);

/// A matrix on one line: "[1 0; 0 1]"; where it has no elements its shape, "2x0".
std::string on_one_line(const Matrix& matrix);

} // namespace split_matrix
