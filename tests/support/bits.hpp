#pragma once

#include <reigen/core/strided.hpp>

#include <cstring>
#include <type_traits>
#include <vector>

/// Whether the first `count` elements have the same bits: 0 is not -0, and a NaN is the same as itself.
template <class T>
bool same_bits(const T* a, const T* b, std::size_t count) {
    return count == 0 || std::memcmp(a, b, count * sizeof(T)) == 0;
}

template <class T>
bool same_bits(const std::vector<T>& a, const std::vector<T>& b) {
    return a.size() == b.size() && same_bits(a.data(), b.data(), a.size());
}

/// Whether two matrices have equal sizes and the same bits, however they are stored.
template <class A, class B>
bool same_bits(const reigen::Strided<A>& a, const reigen::Strided<B>& b) {
    static_assert(std::is_same_v<std::remove_const_t<A>, std::remove_const_t<B>>);
    if (a.rows != b.rows || a.cols != b.cols)
        return false;
    for (reigen::Index i = 0; i < a.rows; ++i)
        for (reigen::Index j = 0; j < a.cols; ++j)
            if (std::memcmp(&a(i, j), &b(i, j), sizeof(A)) != 0)
                return false;
    return true;
}

template <class T>
bool same_bits(const reigen::RowMatrix<T>& a, const reigen::RowMatrix<T>& b) {
    return same_bits(reigen::strided(a), reigen::strided(b));
}

/// This rank's parts of two sharded matrices.
template <class A, class B>
    requires requires(const A& a, const B& b) { a.strided(), b.strided(); }
bool same_bits(const A& a, const B& b) {
    return same_bits(a.strided(), b.strided());
}
