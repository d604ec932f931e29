#pragma once

#include <string>

// What each of the two parts of the program can do. They are built for different instruction sets from the same source
// and exchange matrices as plain pointers: row-major, no gaps.

struct Part {
    std::string (*instruction_set)();

    /// Writes `rows` x `cols` small integers that depend on `seed` into memory of its own, aligned as its Eigen wants.
    const float* (*make)(long rows, long cols, int seed);

    /// c = a b, over two ranks of threads, b split by columns, for a [m, k], b [k, n], c [m, n].
    void (*multiply)(long m, long k, long n, const float* a, const float* b, float* c);

    /// Causal ring attention with one head of d over three ranks, for q, k, v and out [tokens, d].
    void (*attend)(long tokens, long d, const float* q, const float* k, const float* v, float* out);
};

extern const Part part_for_the_baseline;
extern const Part part_for_avx2;
