#include "errors/wrong_calls.hpp"

#include <reigen/core/buffer.hpp>
#include <reigen/core/runs.hpp>
#include <reigen/core/strided.hpp>
#include <reigen/kernel/attention_forward.hpp>
#include <reigen/kernel/dropout.hpp>
#include <reigen/kernel/gemm.hpp>
#include <reigen/kernel/norm.hpp>
#include <reigen/kernel/rotary.hpp>

namespace core_test {

using namespace wrong_calls;

namespace {

constexpr auto shape_error = Refused::shape;
constexpr auto argument_error = Refused::argument;
using View = Strided<double>;
using ConstView = Strided<const double>;

double numbers[64] = {};

View view(Index rows, Index cols) {
    return {numbers, rows, cols, cols, 1};
}

void multiply(View a, View b, View c) {
    gemm(1, a, b, 0, c);
}

const std::vector<WrongCall> sizes = {
    {"a buffer of negative size", argument_error, "negative size -1", [](auto&) { Buffer<float>(-1); }},
    {"a buffer whose bytes overflow", shape_error, "4611686018427387904 elements of 8 bytes",
     [](auto&) { Buffer<double> buffer(huge); }},
    {"a buffer whose bytes overflow to a few", shape_error, "2305843009213693953 elements of 8 bytes",
     [](auto&) { Buffer<double> buffer((Index(1) << 61) + 1); }},
    {"a run of negative count", argument_error, "count -2", [](auto&) { Runs({{0, 1, -2}}); }},
    {"a run that stands still", argument_error, "stride 0", [](auto&) { Runs({{0, 0, 3}}); }},
    {"a run that starts before 0", argument_error, "start -1", [](auto&) { Runs({{-1, 1, 3}}); }},
    {"a run whose last index overflows", shape_error, "4611686018427387904 times 2",
     [](auto&) { Runs({{0, huge, 3}}); }},
    {"a run whose end overflows", shape_error, "9223372036854775807 and 1", [](auto&) { Runs({{largest, 1, 2}}); }},
    {"more indices than can be counted", shape_error, "are more than an Index can count",
     [](auto&) { Runs({{0, 1, largest}, {0, 1, 1}}); }},
    {"a slice beyond the end", shape_error, "slice of 3 from 2 out of 4", [](auto&) { Runs::range(0, 4).slice(2, 3); }},
    {"a slice whose end overflows", shape_error, "slice of 9223372036854775807 from 2 out of 4",
     [](auto&) { Runs::range(0, 4).slice(2, largest); }},
};

const std::vector<WrongCall> kernels = {
    {"gemm of shapes that do not fit", shape_error, "a is 2x3, b is 4x2, c is 2x2",
     [](auto&) { multiply(view(2, 3), view(4, 2), view(2, 2)); }},
    {"gemm without memory", argument_error, "null data, 2x3 elements",
     [](auto&) { multiply({nullptr, 2, 3, 3, 1}, view(3, 2), {numbers + 32, 2, 2, 2, 1}); }},
    {"gemm into nowhere", argument_error, "null data, 2x2 elements",
     [](auto&) { multiply(view(2, 3), view(3, 2), {nullptr, 2, 2, 2, 1}); }},
    {"gemm of negative sizes", shape_error, "a matrix of -2x3",
     [](auto&) { multiply(view(-2, 3), view(3, 2), view(-2, 2)); }},
    {"gemm into its own factor", argument_error, "c, 2x2, lies where a factor does",
     [](auto&) { multiply(view(2, 2), {numbers + 8, 2, 2, 2, 1}, view(2, 2)); }},
    {"a norm of another shape", shape_error, "x is 2x4, another matrix 2x3",
     [](auto&) {
         const NormParameters<double> parameters{numbers};
         normalise<double>(ConstView(view(2, 4)), parameters, view(2, 3), {numbers + 40, numbers + 50});
     }},
    {"a norm across a column-major matrix", shape_error, "the column stride is 2",
     [](auto&) {
         const NormParameters<double> parameters{numbers};
         normalise<double>(ConstView{numbers, 2, 4, 1, 2}, parameters, view(2, 4), {numbers + 40, numbers + 50});
     }},
    {"the gradient of a norm of another shape", shape_error, "x is 2x4, another matrix 3x4",
     [](auto&) {
         normalise_backward<double>(ConstView(view(2, 4)), {numbers}, {numbers, numbers}, ConstView(view(3, 4)),
                                    view(2, 4), numbers, nullptr);
     }},
    {"rotary heads of odd size", argument_error, "head_dim is 3",
     [](auto&) { RotaryTable<float>(Runs::range(0, 4), 3); }},
    {"rotary heads of negative size", argument_error, "head_dim is -2",
     [](auto&) { RotaryTable<float>(Runs::range(0, 4), -2); }},
    {"a rotary base that is negative", argument_error, "the base is -10000",
     [](auto&) { RotaryTable<float>(Runs::range(0, 4), 4, -10000); }},
    {"a rotary base that is no number", argument_error, "the base is nan",
     [](auto&) { RotaryTable<float>(Runs::range(0, 4), 4, not_a_number); }},
    {"rotary columns that are no whole heads", shape_error, "6 columns are not whole heads of 4",
     [](auto&) { rotary(view(2, 6), RotaryTable<double>(Runs::range(0, 2), 4), Rotation::forwards); }},
    {"rotary rows that are no whole sequences", shape_error, "3 rows are not whole sequences of 2",
     [](auto&) { rotary(view(3, 4), RotaryTable<double>(Runs::range(0, 2), 4), Rotation::forwards); }},
    {"dropout with probability one", argument_error, "probability 1",
     [](auto&) { DropoutPattern(1, 4, RandomStream(1)); }},
    {"dropout that is no number", argument_error, "probability nan",
     [](auto&) { DropoutPattern(not_a_number, 4, RandomStream(1)); }},
    {"dropout of other rows", shape_error, "3 rows, but runs of 2",
     [](auto&) { dropout(view(3, 4), Runs::range(0, 2), DropoutPattern(0.5, 4, RandomStream(1))); }},
    {"attention of heads that do not group", shape_error, "3 ",
     [](auto&) {
         AttentionState<double>(dense_heads<const double>(numbers, 1, 2, 3, 4), Runs::range(0, 2), 2, 4, {});
     }},
    {"attention of other positions", shape_error, "3 positions for 2 queries",
     [](auto&) {
         AttentionState<double>(dense_heads<const double>(numbers, 1, 2, 2, 4), Runs::range(0, 3), 2, 4, {});
     }},
    {"keys of another batch", shape_error, "1 sequences of queries, 2 of keys, 1 of values",
     [](auto&) {
         AttentionState<double> state(dense_heads<const double>(numbers, 1, 2, 2, 4), Runs::range(0, 2), 2, 4, {});
         state.absorb(dense_heads<const double>(numbers, 2, 2, 2, 4), dense_heads<const double>(numbers, 1, 2, 2, 4),
                      Runs::range(0, 2));
     }},
};

} // namespace

TEST(errors, of_sizes_and_runs) {
    expect_refused(sizes);
}

TEST(errors, of_kernels) {
    expect_refused(kernels);
}

} // namespace core_test
