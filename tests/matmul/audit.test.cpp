#include "matmul/dense.hpp"

#include <reigen/matmul/audit.hpp>
#include <reigen/matmul/matmul.hpp>

namespace audit_test {

namespace {

using namespace dense_products;
using namespace reigen;

constexpr Index m = 7, k = 10, n = 9;

/// More than there are.
constexpr AuditOptions every_row = {.rows = 1'000'000'000'000, .seed = 3};

template <Placement A, Placement B, Placement C>
void expect_found(const Mesh& mesh) {
    const Dense a = integers(m, k, 1), b = integers(k, n, 2), c = times(a, b);
    const auto sharded_a = sharded<A, float>(mesh, a);
    const auto sharded_b = sharded<B, float>(mesh, b);
    Sharded<float, C> result(mesh, m, n);
    matmul_into(1, sharded_a, sharded_b, 0, result);
    const AuditReport right = audit_product(sharded_a, sharded_b, result, every_row);
    EXPECT_EQ(right.error, 0) << to_string(right);
    EXPECT_GE(right.elements, m * n);
    const AuditReport drawn = audit_product(sharded_a, sharded_b, result, {.rows = m - 1, .seed = 3});
    EXPECT_EQ(drawn.elements, right.elements / m * (m - 1)); // as often a row as every row
    EXPECT_EQ(drawn.error, 0) << to_string(drawn);
    for (Index row = 0; row < m; ++row)
        for (const Index col : {Index(0), n - 1}) {
            auto wrong = result.clone();
            const auto i = wrong.row_runs().find(row);
            const auto j = wrong.col_runs().find(col);
            const bool first = mesh.rank(C.partial) == 0;
            if (i && j && first)
                wrong.local()(*i, *j) += 1;
            const AuditReport report = audit_product(sharded_a, sharded_b, wrong, every_row);
            EXPECT_GT(report.error, 1e-4) << row << ", " << col;
            EXPECT_EQ(report.row, row);
            EXPECT_EQ(report.col, col);
        }
}

} // namespace

TEST(audit, of_every_kind_of_product_finds_the_one_wrong_element) {
    on_every_world([](const Communicator& world) {
        const Mesh mesh(world, {{Axes::tp, world.size()}});
        expect_found<replicated, split_cols(tp), split_cols(tp)>(mesh);
        expect_found<split_rows(tp), replicated, split_rows(tp)>(mesh);
        expect_found<split_cols(tp), split_rows(tp), partial(tp)>(mesh);
        expect_found<split_cols(tp), split_rows(tp), replicated>(mesh);
        expect_found<split_cols(tp), split_rows(tp), split_rows(tp)>(mesh);
        expect_found<split_cols(tp), split_rows(tp), split_cols(tp)>(mesh);
    });
    on_mesh({{Axes::dp, 2}, {Axes::tp, 2}}, [](const Mesh& mesh) {
        expect_found<split_rows(dp), split_cols(tp), Placement{dp, tp, {}}>(mesh);
        expect_found<Placement{dp, tp, {}}, split_rows(tp), split_rows(dp)>(mesh);
        expect_found<Placement{dp, tp, {}}, split_rows(tp), split_rows(dp | tp)>(mesh);
    });
}

TEST(audit, a_bias_belongs_to_the_product) {
    on_every_world([](const Communicator& world) {
        const Mesh mesh(world, {{Axes::tp, world.size()}});
        const auto a = sharded<replicated, double>(mesh, integers(m, k, 1));
        const auto b = sharded<split_cols(tp), double>(mesh, integers(k, n, 2));
        const auto bias = sharded<split_cols(tp), double>(mesh, integers(1, n, 3));
        auto c = matmul(a, b);
        c.local().rowwise() += bias.local().row(0);
        EXPECT_EQ(audit_product(a, b, c, bias, every_row).error, 0);
        EXPECT_GT(audit_product(a, b, c, every_row).error, 1e-4);
    });
}

TEST(audit, a_value_that_is_not_a_number_is_an_infinite_error) {
    on_every_world([](const Communicator& world) {
        const Mesh mesh(world, {{Axes::tp, world.size()}});
        const auto a = sharded<replicated, float>(mesh, integers(m, k, 1));
        const auto b = sharded<split_cols(tp), float>(mesh, integers(k, n, 2));
        auto c = matmul(a, b);
        if (const auto j = c.col_runs().find(4))
            c.local()(2, *j) = std::numeric_limits<float>::quiet_NaN();
        const AuditReport report = audit_product(a, b, c, every_row);
        EXPECT_EQ(report.error, std::numeric_limits<double>::infinity());
        EXPECT_EQ(report.row, 2);
        EXPECT_EQ(report.col, 4);
        EXPECT_FALSE(report.within(1e300));
    });
}

TEST(audit, cancellation_is_no_fault) {
    const Mesh mesh;
    Dense a(1, 3), b(3, 1);
    a(0, 0) = 1e8, a(0, 1) = 1, a(0, 2) = -1e8;
    b(0, 0) = b(1, 0) = b(2, 0) = 1.25;
    const auto sharded_a = sharded<replicated, float>(mesh, a);
    const auto sharded_b = sharded<replicated, float>(mesh, b);
    const auto c = matmul(sharded_a, sharded_b); // 0 in place of 1.25
    EXPECT_LT(audit_product(sharded_a, sharded_b, c).error, 1e-7);
}

TEST(audit, of_no_rows_says_so) {
    const Mesh mesh;
    const auto a = sharded<replicated, float>(mesh, integers(m, k, 1));
    const auto b = sharded<replicated, float>(mesh, integers(k, n, 2));
    const AuditReport report = audit_product(a, b, matmul(a, b), {.rows = 0});
    EXPECT_EQ(report.elements, 0);
    EXPECT_FALSE(report.within(1));
    EXPECT_THROW(audit_product(a, b, matmul(a, b), {.rows = -1}), ArgumentError);
}

TEST(audit, shapes_that_do_not_fit_are_named) {
    const Mesh mesh;
    const auto a = sharded<replicated, float>(mesh, integers(m, k, 1));
    const auto b = sharded<replicated, float>(mesh, integers(k, n, 2));
    EXPECT_THROW(audit_product(a, b, sharded<replicated, float>(mesh, integers(m, n + 1, 1))), ShapeError);
    EXPECT_THROW(audit_product(b, b, sharded<replicated, float>(mesh, integers(k, n, 1))), ShapeError);
}

} // namespace audit_test
