// One part of the program; PART is its name. Included by a file for each instruction set.

#include "part.hpp"

#include <reigen/attention/ring.hpp>
#include <reigen/comm/threads.hpp>
#include <reigen/matmul/matmul.hpp>

namespace {

using namespace reigen;

std::string name_of_set() {
    return instruction_set;
}

const float* make(long rows, long cols, int seed) {
    static std::vector<RowMatrix<float>> made;
    RowMatrix<float>& matrix = made.emplace_back(rows, cols);
    for (Index i = 0; i < rows; ++i)
        for (Index j = 0; j < cols; ++j)
            matrix(i, j) = float((7 * i + 3 * j + i * j + 5 * seed) % 13) - 6;
    return matrix.data();
}

/// A rank's part of what lies whole in memory of the other part of the program.
template <Placement Where>
Sharded<float, Where> part_of(const Mesh& mesh, const Extent& rows, const Extent& cols, const float* whole,
                              Index row_length) {
    return Sharded<float, Where>::from_global(mesh, rows, cols,
                                              [=](Index i, Index j) { return whole[i * row_length + j]; });
}

template <Placement Where>
void write_back(const Sharded<float, Where>& x, float* whole) {
    for (Index i = 0; i < x.local().rows(); ++i)
        for (Index j = 0; j < x.local().cols(); ++j)
            whole[x.row_runs()[i] * x.cols() + x.col_runs()[j]] = x.local()(i, j);
}

void multiply(long m, long k, long n, const float* a, const float* b, float* c) {
    run_threads(2, [&](const Communicator& world) {
        const Mesh mesh(world, {{Axes::tp, 2}});
        write_back(matmul(part_of<replicated>(mesh, m, k, a, k), part_of<split_cols(tp)>(mesh, k, n, b, n)), c);
    });
}

void attend(long tokens, long d, const float* q, const float* k, const float* v, float* out) {
    run_threads(3, [&](const Communicator& world) {
        const Mesh mesh(world, {{Axes::cp, 3}});
        const Sequences sequences = {.length = tokens, .layout = SequenceLayout::zigzag};
        const auto part = [&](const float* whole) {
            return part_of<split_rows(cp)>(mesh, sequences.rows(mesh, cp), d, whole, d);
        };
        const auto of_q = part(q), of_k = part(k), of_v = part(v);
        write_back(ring_attention(heads(of_q, sequences, d), heads(of_k, sequences, d), heads(of_v, sequences, d),
                                  {.mask = Mask::causal(), .scale = 0.01})
                       .out,
                   out);
    });
}

} // namespace

const Part PART = {name_of_set, make, multiply, attend};
