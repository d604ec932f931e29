#include "matmul/dense.hpp"
#include "random/draw.hpp"

#include <reigen/matmul/matmul.hpp>

namespace products_test {

using namespace dense_products;
using namespace random_cases;

namespace {

/// Shapes, partitions, storage, alpha, beta and the mesh of one product.
struct Product {
    explicit Product(Index number)
        : draw(number, 1),
          dp_ranks(int(draw.between(1, 3))),
          tp_ranks(int(draw.between(1, dp_ranks == 1 ? 5 : 2))),
          m(draw.size(0, 40)),
          k(draw.size(0, 40)),
          n(draw.size(0, 40)),
          alpha(int(draw.between(-2, 2))),
          beta(int(draw.between(-1, 1))),
          a(integers(m, k, 1)),
          b(integers(k, n, 2)),
          c(integers(m, n, 3)),
          want(m, n) {
        const Dense ab = times(a, b);
        for (Index i = 0; i < m; ++i)
            for (Index j = 0; j < n; ++j)
                want(i, j) = alpha * ab(i, j) + beta * c(i, j);
    }

    int ranks() const { return dp_ranks * tp_ranks; }

    int over(Axes axes) const { return (contains(axes, dp) ? dp_ranks : 1) * (contains(axes, tp) ? tp_ranks : 1); }

    Draw draw;
    int dp_ranks, tp_ranks;
    Index m, k, n;
    int alpha, beta;
    Dense a, b, c, want;
};

/// This rank's part of a dense matrix, in memory of either storage order with gaps.
template <Placement Where, class T>
class Stored {
  public:
    Stored(const Mesh& mesh, const Dense& x, const Partition& rows, const Partition& cols, bool by_columns)
        : spec_(mesh, Where, rows, cols),
          memory_(std::size_t(span()) + 1, T(77)),
          local_(by_columns
                     ? Strided<T>{memory_.data(), spec_.local_rows(), spec_.local_cols(), 1, spec_.local_rows() + 2}
                     : Strided<T>{memory_.data(), spec_.local_rows(), spec_.local_cols(), spec_.local_cols() + 3, 1}) {
        const bool first = mesh.rank(Where.partial) == 0;
        for (Index i = 0; i < local_.rows; ++i)
            for (Index j = 0; j < local_.cols; ++j)
                local_(i, j) = first ? T(float(x(spec_.row_runs()[i], spec_.col_runs()[j]))) : T(0);
    }

    ShardedView<T, Where> view() { return {spec_, local_}; }

    /// Elements that differ from the matrix, and gaps that were written to.
    void expect(const Dense& want) const {
        Index touched = std::count(memory_.begin(), memory_.end(), T(77));
        for (Index i = 0; i < local_.rows; ++i)
            for (Index j = 0; j < local_.cols; ++j) {
                ASSERT_EQ(double(local_(i, j)), want(spec_.row_runs()[i], spec_.col_runs()[j]));
                touched += 1 - (local_(i, j) == T(77));
            }
        EXPECT_EQ(touched, Index(memory_.size()));
    }

  private:
    Index span() const { return (spec_.local_rows() + 3) * (spec_.local_cols() + 3); }

    ShardSpec spec_;
    std::vector<T> memory_;
    Strided<T> local_;
};

/// One product whose factors lie so, into its sum in another placement.
template <class T, Placement A, Placement B, Placement C>
void check(const Product& p) {
    on_threads(p.ranks(), [&](const Communicator& world) {
        const Mesh mesh(world, {{Axes::dp, p.dp_ranks}, {Axes::tp, p.tp_ranks}});
        Draw draw = p.draw; // every rank draws the same
        const Partition rows = draw.partition(p.m, p.over(A.rows));
        const Partition shared = draw.partition(p.k, p.over(A.cols));
        const Partition cols = draw.partition(p.n, p.over(B.cols));
        constexpr bool summed = product(A, B) != C;
        const Partition c_rows = summed ? draw.partition(p.m, p.over(C.rows)) : rows;
        const Partition c_cols = summed ? draw.partition(p.n, p.over(C.cols)) : cols;
        Stored<A, T> a(mesh, p.a, rows, shared, draw.coin());
        Stored<B, T> b(mesh, p.b, shared, cols, draw.coin());
        Stored<C, T> c(mesh, p.c, c_rows, c_cols, draw.coin());
        auto result = c.view();
        matmul_into(T(float(p.alpha)), a.view(), b.view(), T(float(p.beta)), result);
        if constexpr (is_partial(C)) {
            const auto all = sum(c.view());
            for (Index i = 0; i < all.local().rows(); ++i)
                for (Index j = 0; j < all.local().cols(); ++j)
                    ASSERT_EQ(double(all.local()(i, j)), p.want(all.row_runs()[i], all.col_runs()[j]));
        } else {
            c.expect(p.want);
        }
    });
}

template <class T>
void check_one(Product& p) {
    constexpr Placement both = {dp, tp, Axes::none};
    switch (p.draw.between(0, 8)) {
    case 0:
        return check<T, replicated, split_cols(tp), split_cols(tp)>(p);
    case 1:
        return check<T, split_rows(dp | tp), replicated, split_rows(dp | tp)>(p);
    case 2:
        return check<T, split_cols(tp), split_rows(tp), partial(tp)>(p);
    case 3:
        return check<T, split_cols(dp | tp), split_rows(dp | tp), replicated>(p);
    case 4:
        return check<T, split_rows(dp), split_cols(tp), both>(p);
    case 5:
        return check<T, both, split_rows(tp), split_rows(dp)>(p);
    case 6:
        return check<T, both, split_rows(tp), split_rows(dp | tp)>(p);
    case 7:
        return check<T, split_cols(tp), split_rows(tp), split_cols(tp)>(p);
    default:
        return check<T, replicated, replicated, replicated>(p);
    }
}

} // namespace

TEST(random, products_equal_plain_loops_bit_for_bit) {
    for_each_case([](Index number) {
        Product p(number);
        p.draw.coin() ? check_one<float>(p) : check_one<double>(p);
    });
}

} // namespace products_test
