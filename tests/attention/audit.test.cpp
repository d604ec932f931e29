#include "attention/ring_cases.hpp"

#include <reigen/attention/audit.hpp>

namespace audit_test {

namespace {

using namespace ring_cases;

constexpr Shape shape_of_test = {2, 9, 11, 4, 2, 8, 16};

/// More than there are.
constexpr AuditOptions every_row = {.rows = 1'000'000'000'000, .seed = 5};

template <class T>
AuditReport audited(const Divided<T>& d, const Attended<T, tokens_and_heads>& attended,
                    const AttentionOptions& options) {
    return audit_attention(d.q_heads(), d.k_heads(), d.v_heads(), attended.out, attended.lse, options, every_row);
}

void expect_found(const Mesh& mesh, SequenceLayout layout, const Mask& mask) {
    const ReferenceProblem p = problem(shape_of_test, mask);
    const Divided<double> d(mesh, p, layout);
    const AttentionOptions options = {.mask = mask};
    auto attended = d.attend(options);
    const AuditReport right = audited(d, attended, options);
    EXPECT_LT(right.error, 1e-14) << to_string(right);
    EXPECT_GE(right.elements, p.q.batch * p.q.tokens * 4 * 17);
    const Index row = 13, col = 37;
    const auto i = attended.out.row_runs().find(row);
    const auto j = attended.out.col_runs().find(col);
    const auto h = attended.lse.col_runs().find(3);
    if (i && j)
        attended.out.local()(*i, *j) += 1e-3;
    AuditReport report = audited(d, attended, options);
    EXPECT_GT(report.error, 1e-5);
    EXPECT_EQ(report.row, row);
    EXPECT_EQ(report.col, col);
    if (i && j)
        attended.out.local()(*i, *j) -= 1e-3;
    if (i && h)
        attended.lse.local()(*i, *h) += 1;
    report = audited(d, attended, options);
    EXPECT_GT(report.error, 1e-2);
    EXPECT_EQ(report.row, row);
    EXPECT_EQ(report.col, 48);
}

} // namespace

TEST(audit, of_attention_finds_the_one_wrong_number) {
    on_every_world([](const Communicator& world) {
        for (const SequenceLayout layout : layouts)
            for (const Mask& mask : {Mask::everything(), Mask::causal(), Mask::window(3, 1)})
                expect_found(ring_of(world), layout, mask);
    });
    on_mesh({{Axes::cp, 2}, {Axes::tp, 2}},
            [](const Mesh& mesh) { expect_found(mesh, SequenceLayout::zigzag, Mask::causal()); });
    on_mesh({{Axes::dp, 2}, {Axes::cp, 2}},
            [](const Mesh& mesh) { expect_found(mesh, SequenceLayout::striped, Mask::causal()); });
}

TEST(audit, rows_that_see_no_key_have_no_error) {
    on_every_world([](const Communicator& world) {
        const ReferenceProblem p = problem({1, 6, 2, 2, 1, 8, 8}, Mask::causal()); // the first four queries see none
        const Divided<float> d(ring_of(world), p, SequenceLayout::contiguous);
        const AttentionOptions options = {.mask = Mask::causal()};
        auto attended = d.attend(options);
        EXPECT_LT(audited(d, attended, options).error, 1e-6);
        if (const auto i = attended.lse.row_runs().find(1))
            attended.lse.local()(*i, 1) = 0;
        const AuditReport report = audited(d, attended, options);
        EXPECT_EQ(report.error, std::numeric_limits<double>::infinity());
        EXPECT_EQ(report.row, 1);
    });
}

} // namespace audit_test
