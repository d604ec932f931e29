#include "errors/wrong_calls.hpp"

#include <reigen/comm/matrix.hpp>
#include <reigen/comm/threads.hpp>

namespace comm_test {

using namespace wrong_calls;

namespace {

constexpr auto shape_error = Refused::shape;
constexpr auto argument_error = Refused::argument;

std::vector<float> floats(Index count) {
    return std::vector<float>(std::size_t(count));
}

/// Equal parts, and of this rank's own one, the whole less the others'.
std::vector<Index> parts(const Communicator& world, Index each) {
    return std::vector<Index>(std::size_t(world.size()), each);
}

void make_mesh(const Communicator& world, const std::vector<MeshAxis>& axes) {
    Mesh(world, axes);
}

const std::vector<WrongCall> ranks_and_tags = {
    {"to a rank beyond the last", argument_error, "send: rank %P of %P",
     [](auto& world) { world.send(floats(1), world.size()); }},
    {"from a negative rank", argument_error, "receive: rank -1", [](auto& world) { world.receive(floats(1), -1); }},
    {"to itself", argument_error, "to itself", [](auto& world) { world.send(floats(1), world.rank()); }},
    {"a negative tag", argument_error, "-1", // of one rank there is nobody to send to either
     [](auto& world) { world.send(floats(1), world.size() > 1 ? (world.rank() + 1) % world.size() : -1, -1); }},
    {"a root beyond the last", argument_error, "root %P of %P",
     [](auto& world) { world.broadcast(floats(1), world.size()); }},
    {"a negative root", argument_error, "root -1", [](auto& world) { world.start_broadcast(Buffer<int>(1), -1); }},
    {"a reduction that there is none of", argument_error, "there is no reduction 9",
     [](auto& world) { world.all_reduce(floats(1), Reduction(9)); }},
    {"a negative color", argument_error, "color -2", [](auto& world) { world.split(-2, 0); }},
    {"a negative deadline", argument_error, "-1 seconds", [](auto& world) { world.set_deadline(-1); }},
    {"a deadline that is no number", argument_error, "nan seconds",
     [](auto& world) { world.set_deadline(not_a_number); }},
    {"a communicator without a backend", argument_error, "no backend",
     [](auto&) { Communicator(std::shared_ptr<Backend>()); }},
};

const std::vector<WrongCall> ranges = {
    {"a range without memory", argument_error, "null data, 4 elements",
     [](auto& world) { world.all_reduce(std::span<float>(static_cast<float*>(nullptr), 4)); }},
    {"a gather of parts that are not the whole", shape_error, "3 elements on each of %P ranks",
     [](auto& world) { world.all_gather(floats(3), floats(3 * world.size() + 1)); }},
    {"too many parts", shape_error, "parts for %P ranks",
     [](auto& world) { world.all_gather(floats(1), floats(world.size()), std::vector<Index>(7, 1)); }},
    {"a negative part", shape_error, "a part is negative",
     [](auto& world) { world.all_gather(floats(1), floats(world.size()), parts(world, -1)); }},
    {"parts of a wrong total", shape_error, "the parts sum to",
     [](auto& world) { world.reduce_scatter(floats(2 * world.size()), floats(1), Reduction::sum, parts(world, 1)); }},
    {"a part beyond the whole", shape_error, "a part of 9223372036854775807 elements of a whole of",
     [](auto& world) { world.all_gather(floats(1), floats(world.size()), parts(world, largest)); }},
    {"a gather of a part that lies elsewhere in the whole", argument_error,
     "all_gather: the ranges overlap, and this rank's",
     [](auto& world) {
         auto all = floats(2 * world.size() + 1);
         world.all_gather(std::span(all).first(2), std::span(all).subspan(1));
     }},
    {"a scatter of unequal parts to elsewhere in the whole", argument_error, "reduce_scatter: the ranges overlap, and",
     [](auto& world) {
         auto sizes = parts(world, 2);
         sizes.back() += 1;
         auto all = floats(2 * world.size() + 2);
         world.reduce_scatter(std::span(all).subspan(1), std::span(all).first(std::size_t(sizes[world.rank()])),
                              Reduction::sum, sizes);
     }},
    {"an exchange in place", argument_error, "all_to_all: the ranges overlap",
     [](auto& world) {
         auto all = floats(world.size());
         world.all_to_all(all, parts(world, 1), all, parts(world, 1));
     }},
    {"parts whose sum overflows to the whole", shape_error, "elements of a whole of 2",
     [](auto& world) {
         auto wrapping = parts(world, 0); // largest + largest + 4 is 2 again, where there are three
         wrapping[0] = world.size() > 2 ? largest : 3;
         if (world.size() > 2) {
             wrapping[1] = largest;
             wrapping[2] = 4;
         }
         world.all_to_all(floats(2), wrapping, floats(2), wrapping);
     }},
};

const std::vector<WrongCall> matrices = {
    {"rows of other columns", shape_error, "mine is 4x2, all is 4x3",
     [](auto& world) { all_gather_rows(world, RowMatrix<float>(4, 2), RowMatrix<float>(4, 3)); }},
    {"columns of other rows", shape_error, "all_gather_cols: mine is 4x2, all is 3x6",
     [](auto& world) { all_gather_cols(world, RowMatrix<float>(4, 2), RowMatrix<float>(3, 6)); }},
    {"columns that are not the whole", shape_error, "8 elements on each of %P ranks are not the whole of 44",
     [](auto& world) { all_gather_cols(world, RowMatrix<float>(4, 2), RowMatrix<float>(4, 11)); }},
    {"scattered columns of other rows", shape_error, "reduce_scatter_cols: all is 4x6, mine is 3x2",
     [](auto& world) { reduce_scatter_cols(world, RowMatrix<float>(4, 6), RowMatrix<float>(3, 2)); }},
    {"a matrix without memory", argument_error, "null data, 2x3 elements",
     [](auto& world) { all_reduce(world, Strided<float>{nullptr, 2, 3, 3, 1}); }},
    {"a strided matrix without memory", argument_error, "null data, 2x3 elements",
     [](auto& world) { all_reduce(world, Strided<float>{nullptr, 2, 3, 7, 2}); }},
    {"a matrix of negative rows", shape_error, "a matrix of -2x3",
     [](auto& world) { broadcast(world, Strided<float>{nullptr, -2, 3, 3, 1}, 0); }},
};

const std::vector<WrongCall> meshes = {
    {"sizes that make other ranks", argument_error, "the communicator has %P",
     [](auto& world) { make_mesh(world, {{dp, world.size()}, {tp, 2}}); }},
    {"no axes for several ranks, or one of two", argument_error, "the communicator has %P",
     [](auto& world) { make_mesh(world, {{tp, world.size() == 1 ? 2 : 1}}); }},
    {"an axis twice", argument_error, "tp is given twice",
     [](auto& world) { make_mesh(world, {{tp, world.size()}, {tp, 1}}); }},
    {"an axis that there is none of", argument_error, "(64) is not one axis",
     [](auto& world) { make_mesh(world, {{Axes(64), world.size()}}); }},
    {"two axes as one", argument_error, "dp|tp", [](auto& world) { make_mesh(world, {{dp | tp, world.size()}}); }},
    {"no axis", argument_error, "none", [](auto& world) { make_mesh(world, {{Axes::none, world.size()}}); }},
    {"a negative size", argument_error, "of size -1", [](auto& world) { make_mesh(world, {{dp, -1}}); }},
    {"negative sizes whose product is right", argument_error, "of size -2",
     [](auto& world) { make_mesh(world, {{dp, -2}, {tp, -2}}); }},
    {"an axis of size 0", argument_error, "of size 0", [](auto& world) { make_mesh(world, {{dp, 0}}); }},
    {"sizes whose product an int would take for 2", argument_error, "makes 4294967298 ranks",
     [](auto& world) { make_mesh(world, {{dp, 3}, {tp, 1431655766}}); }},
    {"sizes whose product overflows", argument_error, "makes 9223372036854775807 ranks",
     [](auto& world) { make_mesh(world, {{dp, 1 << 30}, {cp, 1 << 30}, {tp, 1 << 30}, {ep, 1 << 30}}); }},
    {"a member beyond the last of its group", argument_error, "rank %P of %P",
     [](auto& world) { over(world, tp).coordinate(tp, tp, world.size()); }},
};

const std::vector<WrongCall> threads = {
    {"no ranks", argument_error, "0 ranks", [](auto&) { run_threads(0, [](auto&) {}); }},
    {"negative ranks", argument_error, "-3 ranks", [](auto&) { run_threads(-3, [](auto&) {}); }},
    {"a negative deadline of threads", argument_error, "a deadline of -1",
     [](auto&) { run_threads(1, [](auto&) {}, {.deadline = -1}); }},
    {"a patience that is no number", argument_error, "a patience of nan",
     [](auto&) { run_threads(1, [](auto&) {}, {.patience = not_a_number}); }},
    {"a patience that no clock has", argument_error, "a patience of 1e+300",
     [](auto&) { run_threads(1, [](auto&) {}, {.patience = 1e300}); }},
};

} // namespace

TEST(errors, of_ranks_and_tags) {
    expect_refused(ranks_and_tags);
}

TEST(errors, of_ranges_and_parts) {
    expect_refused(ranges);
}

TEST(errors, of_matrices_in_messages) {
    expect_refused(matrices);
}

TEST(errors, of_meshes) {
    expect_refused(meshes);
}

TEST(errors, of_threads) {
    expect_refused(threads);
}

} // namespace comm_test
