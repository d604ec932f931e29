#include "layout/values.hpp"
#include "random/draw.hpp"

#include <reigen/layout/redistribute.hpp>

namespace redistributions_test {

using namespace random_cases;

namespace {

template <Placement... All>
struct PlacementList {
    static constexpr Index size = sizeof...(All);

    /// Calls `visit` with the index-th placement as a template argument.
    template <class Visit>
    static void with(Index index, const Visit& visit) {
        Index at = 0;
        (void)((at++ == index && (visit.template operator()<All>(), true)) || ...);
    }
};

using Placements = PlacementList<replicated, split_rows(tp), split_cols(tp), partial(tp), split_rows(dp | tp),
                                 split_rows(dp) | split_cols(tp), split_cols(tp) | partial(dp)>;

template <Placement From, Placement To>
void check(Draw draw) {
    const int dp_ranks = int(draw.between(1, 3));
    const int tp_ranks = int(draw.between(1, dp_ranks == 1 ? 5 : 2));
    const Index rows = draw.size(0, 30), cols = draw.size(0, 30);
    on_threads(dp_ranks * tp_ranks, [&](const Communicator& world) {
        const Mesh mesh(world, {{Axes::dp, dp_ranks}, {Axes::tp, tp_ranks}});
        Draw mine = draw;
        const auto partition = [&](Axes axes, Index n) { return mine.partition(n, mesh.size(axes)); };
        const Partition from_rows = partition(From.rows, rows), from_cols = partition(From.cols, cols);
        const Partition to_rows = partition(To.rows, rows), to_cols = partition(To.cols, cols);
        const auto x = filled<From, double>(mesh, from_rows, from_cols);
        auto there =
            mine.coin() ? redistribute<To>(x, to_rows, to_cols) : start_redistribute<To>(x, to_rows, to_cols).wait();
        expect_values(there);
        expect_values(redistribute<From>(std::move(there), from_rows, from_cols));
    });
}

} // namespace

TEST(random, redistributions_hold_the_same_matrix_there_and_back) {
    for_each_case([](Index number) {
        Draw draw(number, 2);
        const Index from = draw.between(0, Placements::size - 1), to = draw.between(0, Placements::size - 1);
        Placements::with(
            from, [&]<Placement From>() { Placements::with(to, [&]<Placement To>() { check<From, To>(draw); }); });
    });
}

} // namespace redistributions_test
