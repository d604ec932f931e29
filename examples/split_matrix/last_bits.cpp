#include <split_matrix/last_bits.hpp>

#include <reigen/layout/redistribute.hpp>
#include <reigen/matmul/matmul.hpp>
#include <reigen/matmul/same_bits.hpp>

#include <iomanip>

namespace split_matrix {
namespace {

using namespace reigen;

constexpr Index columns = 16;
constexpr Index k = 1000;
constexpr Index k_block = 125; // eight blocks, of which each rank holds some whole ones

struct Factors {
    Sharded<float, split_cols(tp)> a;
    Sharded<float, split_rows(tp)> b;
};

Factors factors_on(const Mesh& mesh) {
    const Partition blocks = balanced(mesh, tp, k, k_block);
    const auto value = [](Index i, Index j) { return 1.0F / float(1 + i + 3 * j); };
    return {Sharded<float, split_cols(tp)>::from_global(mesh, 1, blocks, value),
            Sharded<float, split_rows(tp)>::from_global(mesh, blocks, columns, value)};
}

/// The same product on one rank and on all.
struct Compared {
    const char* name;
    RowMatrix<float> one;
    RowMatrix<float> all;

    Index differences() const {
        Index count = 0;
        for (Index j = 0; j < columns; ++j)
            count += one(0, j) != all(0, j);
        return count;
    }

    /// Element 0 where none differs.
    Index first_difference() const {
        for (Index j = 0; j < columns; ++j)
            if (one(0, j) != all(0, j))
                return j;
        return 0;
    }
};

void show(std::ostream& out, const Compared& product, Index element) {
    out << "    " << std::left << std::setw(30) << product.name << std::hexfloat << std::setw(16)
        << product.one(0, element) << std::setw(16) << product.all(0, element) << std::defaultfloat
        << product.differences() << " of " << columns << " elements\n";
}

} // namespace

void show_last_bits(const Mesh& mesh, std::ostream& out) {
    const Factors here = factors_on(mesh);
    const Factors alone = factors_on(Mesh());
    const Compared plain = {"sum(matmul(a, b))", matmul(alone.a, alone.b).local(), sum(matmul(here.a, here.b)).local()};
    const Compared same_bits = {"matmul_same_bits(a, b, 125)", matmul_same_bits(alone.a, alone.b, k_block).local(),
                                matmul_same_bits(here.a, here.b, k_block).local()};
    const int ranks = mesh.size(tp);
    out << "The last bits of a float product with k = " << k << ", on 1 rank and with k split over " << ranks << "\n\n";
    out << "    " << std::left << std::setw(30) << concat("element ", plain.first_difference()) << std::setw(16)
        << "1 rank" << std::setw(16) << concat(ranks, ranks == 1 ? " rank" : " ranks") << "differ\n";
    show(out, plain, plain.first_difference());
    show(out, same_bits, plain.first_difference());
}

} // namespace split_matrix
