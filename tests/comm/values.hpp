#pragma once

#include "support/bits.hpp"
#include "support/words.hpp"
#include "support/worlds.hpp"

#include <reigen/core/random.hpp>

#include <tuple>
#include <utility>
#include <vector>

// What the tests of comm/ send: small numbers that vary by rank and position, and the results by plain loops.

using reigen::bfloat16;
using reigen::Communicator;
using reigen::Index;
using reigen::Reduction;

using AllTypes = std::tuple<float, double, bfloat16, std::int8_t, std::int16_t, std::int32_t, std::int64_t,
                            std::uint8_t, std::uint16_t, std::uint32_t, std::uint64_t>;

/// Calls `test.operator()<T>()` for every element type.
template <class Test>
void for_each_type(Test test) {
    [&]<class... T>(std::tuple<T...>*) { (test.template operator()<T>(), ...); }(static_cast<AllTypes*>(nullptr));
}

/// 0 to 12, another order on each rank.
inline int small_value(int rank, Index i) {
    return int((7 * rank + 5 * i + 3 * rank * i) % 13);
}

template <class T>
std::vector<T> small_values(int rank, Index count) {
    std::vector<T> values;
    for (Index i = 0; i < count; ++i)
        values.push_back(T(float(small_value(rank, i))));
    return values;
}

/// Numbers of many magnitudes, so that another order of summation gives other bits.
template <class T>
std::vector<T> wild_values(int rank, Index count) {
    const reigen::RandomStream random(11, rank);
    std::vector<T> values;
    for (Index i = 0; i < count; ++i)
        values.push_back(T(float(random.normal(2 * i) * std::exp2(10 * random.uniform(2 * i + 1)))));
    return values;
}

/// Parts that differ from rank to rank, rank 1's empty: 3, 0, 7, 10, ...
inline std::vector<Index> uneven_parts(int ranks) {
    std::vector<Index> parts;
    for (int r = 0; r < ranks; ++r)
        parts.push_back(r == 1 ? 0 : 3 * r + (r == 0 ? 3 : 1));
    return parts;
}

inline Index first_of(const std::vector<Index>& parts, int rank) {
    Index first = 0;
    for (int r = 0; r < rank; ++r)
        first += parts[std::size_t(r)];
    return first;
}

inline Index total(const std::vector<Index>& parts) {
    return first_of(parts, int(parts.size()));
}

/// Every world of the binary, and the communicator that needs no world.
inline void on_every_backend(const WorldBody& body) {
    on_every_world(body);
    body(Communicator());
}

template <class T>
reigen::Buffer<T> buffer_of(const std::vector<T>& values) {
    reigen::Buffer<T> buffer{Index(values.size())};
    std::copy(values.begin(), values.end(), buffer.begin());
    return buffer;
}

template <class T>
std::vector<T> vector_of(const reigen::Buffer<T>& buffer) {
    return {buffer.begin(), buffer.end()};
}
