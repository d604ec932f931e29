#include <split_matrix/picture.hpp>

#include <reigen/core/error.hpp>

#include <algorithm>

namespace split_matrix {
namespace {

using reigen::concat;
using reigen::Partition;

std::string label(int rank) {
    return concat('r', rank);
}

std::string padded(const std::string& text, std::size_t width, bool to_the_right = true) {
    const std::string space(width - std::min(width, text.size()), ' ');
    return to_the_right ? space + text : text + space;
}

/// The numbers of one row that one rank holds.
std::string cells(const Matrix& matrix, Index row, const reigen::Runs& cols, std::size_t width) {
    std::string text;
    for (Index j = 0; j < cols.size(); ++j)
        text += concat(j == 0 ? "" : " ", padded(concat(matrix(row, cols[j])), width));
    return text;
}

std::size_t widest_cell(const Matrix& matrix) {
    std::size_t width = 1;
    for (Index e = 0; e < matrix.size(); ++e)
        width = std::max(width, concat(matrix.data()[e]).size());
    return width;
}

/// The parts of one line in brackets; ranks without columns are left out.
template <class Part>
std::string joined(const Partition& cols, const std::string& between, Part part) {
    std::string text;
    for (int rank = 0; rank < cols.ranks(); ++rank)
        if (cols.count(rank) > 0)
            text += (text.empty() ? "" : between) + part(rank);
    return text;
}

} // namespace

Picture picture_of(const Matrix& matrix, const Partition& rows, const Partition& cols) {
    const std::size_t cell = widest_cell(matrix);
    const bool cut_columns = cols.ranks() > 1;
    const auto block = [&](Index row, int rank) {
        const std::string text = cells(matrix, row, cols.runs(rank), cell);
        return cut_columns ? padded(text, label(rank).size(), false) : text;
    };
    Picture picture;
    for (int owner = 0; owner < rows.ranks(); ++owner) {
        if (rows.count(owner) > 0 && !picture.empty())
            picture.emplace_back(picture.back().size() - (label(owner).size() + 1), '-');
        for (Index i = 0; i < rows.count(owner); ++i) {
            const Index row = rows.runs(owner)[i];
            const std::string numbers = joined(cols, " | ", [&](int rank) { return block(row, rank); });
            picture.push_back("[ " + numbers + " ]" + (rows.ranks() > 1 ? ' ' + label(owner) : ""));
        }
    }
    if (cut_columns && matrix.rows() > 0)
        picture.push_back(
            "  " + joined(cols, "   ", [&](int rank) { return padded(label(rank), block(0, rank).size(), false); }));
    return picture;
}

std::string side_by_side(const std::vector<std::string>& names, const std::vector<Picture>& pictures) {
    std::size_t height = 0;
    for (const Picture& picture : pictures)
        height = std::max(height, picture.size());
    std::string text;
    for (std::size_t line = 0; line < height; ++line) {
        std::string whole;
        for (std::size_t p = 0; p < pictures.size(); ++p) {
            std::size_t width = 0;
            for (const std::string& row : pictures[p])
                width = std::max(width, row.size());
            const std::string name = names[p] + " = ";
            whole += (line == 0 ? name : std::string(name.size(), ' ')) +
                     padded(line < pictures[p].size() ? pictures[p][line] : "", width, false) + "     ";
        }
        text += "    " + whole.substr(0, whole.find_last_not_of(' ') + 1) + '\n';
    }
    return text;
}

std::string on_one_line(const Matrix& matrix) {
    if (matrix.size() == 0)
        return reigen::shape(matrix.rows(), matrix.cols());
    std::string text;
    for (Index i = 0; i < matrix.rows(); ++i)
        for (Index j = 0; j < matrix.cols(); ++j)
            text += concat(j > 0 ? " " : i > 0 ? "; " : "[", matrix(i, j));
    return text + ']';
}

} // namespace split_matrix
