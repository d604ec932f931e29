#include <split_matrix/product.hpp>

#include <split_matrix/picture.hpp>

#include <reigen/comm/texts.hpp>
#include <reigen/layout/ledger.hpp>
#include <reigen/matmul/matmul.hpp>

#include <algorithm>
#include <string>
#include <vector>

namespace split_matrix {
namespace {

using namespace reigen;

Matrix x_values() {
    return (Matrix(1, 2) << 2, 3).finished();
}

Matrix w_values() {
    return (Matrix(2, 4) << 1, 0, 1, 2, 0, 1, 3, 4).finished();
}

std::string ranks_of(const Mesh& mesh) {
    return concat(mesh.size(tp), mesh.size(tp) == 1 ? " rank" : " ranks");
}

/// One line a rank: its factors and their product; below a line, what becomes of all of them.
template <ShardedLike X, ShardedLike W, ShardedLike Y>
void show_work(const X& x, const W& w, const Y& y, const std::string& together, const Matrix& result,
               std::ostream& out) {
    const Communicator& world = x.mesh().world();
    const auto factors = all_gather_texts(world, on_one_line(x.local()) + ' ' + on_one_line(w.local()) + " = ");
    const auto products = all_gather_texts(world, on_one_line(y.local()));
    std::size_t width = 0;
    for (const std::string& text : factors)
        width = std::max(width, text.size());
    for (std::size_t rank = 0; rank < factors.size(); ++rank)
        out << "    rank " << rank << "   " << std::string(width - factors[rank].size(), ' ') << factors[rank]
            << products[rank] << '\n';
    out << "             " << std::string(width + 12, '-') << "  " << together << '\n';
    out << "             " << std::string(width, ' ') << on_one_line(result) << "\n\n";
}

template <ShardedLike X, ShardedLike W, ShardedLike Y, ShardedLike Whole>
void show_ledger(const X& x, const W& w, const Y& y, const Whole& whole, const char* name, std::ostream& out) {
    ShapeLedger ledger;
    ledger.add("X", x);
    ledger.add("W", w);
    ledger.add("X W", y);
    ledger.add(name, whole);
    out << "Shape ledger\n\n" << ledger.to_string() << '\n';
}

} // namespace

void show_split_columns(const Mesh& mesh, std::ostream& out) {
    const auto x = Sharded<double, replicated>::from_global(mesh, x_values());
    const auto w = Sharded<double, split_cols(tp)>::from_global(mesh, w_values());
    const auto y = matmul(x, w);
    const auto whole = redistribute<replicated>(y);

    out << "Y = X W, the columns of W split over " << ranks_of(mesh)
        << ": every rank has X, each makes its columns of Y"
        << "\n\n";
    out << side_by_side({"X", "W", "Y"}, {picture_of(x_values(), x.row_partition(), x.col_partition()),
                                          picture_of(w_values(), w.row_partition(), w.col_partition()),
                                          picture_of(whole.local(), y.row_partition(), y.col_partition())})
        << '\n';
    show_work(x, w, y, "concatenated: all-gather, in rank order", whole.local(), out);
    show_ledger(x, w, y, whole, "gathered", out);
}

void show_split_rows(const Mesh& mesh, std::ostream& out) {
    const auto x = Sharded<double, split_cols(tp)>::from_global(mesh, x_values());
    const auto w = Sharded<double, split_rows(tp)>::from_global(mesh, w_values());
    const auto summand = matmul(x, w);
    const auto y = sum(summand);

    out << "Y = X W, the rows of W and the columns of X split over " << ranks_of(mesh)
        << ": each makes a summand of all "
        << "of Y\n\n";
    out << side_by_side({"X", "W"}, {picture_of(x_values(), x.row_partition(), x.col_partition()),
                                     picture_of(w_values(), w.row_partition(), w.col_partition())})
        << '\n';
    show_work(x, w, summand, "summed: all-reduce, in rank order", y.local(), out);
    show_ledger(x, w, summand, y, "summed", out);
}

} // namespace split_matrix
