#pragma once

#include <reigen/comm/backend/operation.hpp>

#include <algorithm>
#include <cstring>
#include <span>
#include <type_traits>

namespace reigen::inline REIGEN_INSTRUCTION_SET {

namespace detail {

/// Calls `visitor` with a value of the C++ type that `type` names.
template <class Visitor>
void visit(DataType type, Visitor&& visitor) {
    switch (type) {
    case DataType::float32:
        return visitor(float{});
    case DataType::float64:
        return visitor(double{});
    case DataType::bf16:
        return visitor(bfloat16{});
    case DataType::int8:
        return visitor(std::int8_t{});
    case DataType::int16:
        return visitor(std::int16_t{});
    case DataType::int32:
        return visitor(std::int32_t{});
    case DataType::int64:
        return visitor(std::int64_t{});
    case DataType::uint8:
        return visitor(std::uint8_t{});
    case DataType::uint16:
        return visitor(std::uint16_t{});
    case DataType::uint32:
        return visitor(std::uint32_t{});
    case DataType::uint64:
        return visitor(std::uint64_t{});
    }
}

struct Sum {
    template <class A>
    A operator()(A a, A b) const {
        return A(a + b);
    }
};

struct Max {
    template <class A>
    A operator()(A a, A b) const {
        return a > b || a != a ? a : b;
    }
};

struct Min {
    template <class A>
    A operator()(A a, A b) const {
        return a < b || a != a ? a : b;
    }
};

/// to[i] = combine(a[i], b[i]), converting to the accumulator type and back where the types differ.
template <class To, class A, class B, class Combine>
void combine_into(To* to, const A* a, const B* b, Index count, Combine combine) {
    using Held = Accumulator<B>;
    for (Index i = 0; i < count; ++i)
        to[i] = To(combine(Held(a[i]), Held(b[i])));
}

/// to[i] = terms[0][i], terms[1][i], ... combined from the left; `to` may be one of the terms.
///
/// Goes by blocks that stay in the first-level cache, so each term is read from memory once and `to` written once.
template <class T, class Combine>
void reduce_terms(T* to, std::span<const std::byte* const> terms, Index count, Combine combine) {
    constexpr Index block = 1024;
    alignas(64) Accumulator<T> held[block];
    const auto term = [&](std::size_t t, Index first) { return reinterpret_cast<const T*>(terms[t]) + first; };
    const std::size_t last = terms.size() - 1;
    for (Index first = 0; first < count; first += block) {
        const Index n = std::min(block, count - first);
        if constexpr (std::is_same_v<T, Accumulator<T>>) {
            for (std::size_t t = 1; t <= last; ++t)
                combine_into(t == last ? to + first : held, t == 1 ? term(0, first) : held, term(t, first), n, combine);
        } else if (last == 1) {
            combine_into(to + first, term(0, first), term(1, first), n, combine);
        } else {
            combine_into(held, term(0, first), term(1, first), n, combine);
            for (std::size_t t = 2; t < last; ++t)
                combine_into(held, held, term(t, first), n, combine);
            combine_into(to + first, held, term(last, first), n, combine);
        }
    }
}

/// The sum of integers wraps around: signed ones are summed as those without sign, which do so by the rules.
template <class T>
using Summed = typename std::conditional_t<std::is_integral_v<T>, std::make_unsigned<T>, std::type_identity<T>>::type;

/// One type with all reductions: what a program of many files compiles once, in the file that instantiates it.
template <class T>
void reduce_elements(T* to, std::span<const std::byte* const> terms, Index count, Reduction reduction) {
    switch (reduction) {
    case Reduction::sum:
        return reduce_terms(reinterpret_cast<Summed<T>*>(to), terms, count, Sum{});
    case Reduction::max:
        return reduce_terms(to, terms, count, Max{});
    case Reduction::min:
        return reduce_terms(to, terms, count, Min{});
    }
}

} // namespace detail

/// Combines `count` elements of each term, in the order of the terms, into `to`, which may be one of them.
///
/// Order  ((terms[0] + terms[1]) + terms[2]) + ..., each element by itself; bfloat16 is held in float and rounded once.
template <class T>
void reduce_in_order(Reduction reduction, std::span<const std::byte* const> terms, Index count, T* to) {
    if (count > 0 && terms.size() > 1)
        detail::reduce_elements(to, terms, count, reduction);
    else if (count > 0 && reinterpret_cast<const std::byte*>(to) != terms[0])
        std::memcpy(to, terms[0], std::size_t(count) * sizeof(T));
}

/// The same of the type that `type` names.
inline void reduce_in_order(DataType type, Reduction reduction, std::span<const std::byte* const> terms, Index count,
                            std::byte* to) {
    detail::visit(type, [&]<class T>(T) { reduce_in_order(reduction, terms, count, reinterpret_cast<T*>(to)); });
}

#ifdef REIGEN_KERNEL_INSTANTIATION
namespace detail {
using ReducedTerms = std::span<const std::byte* const>;
REIGEN_KERNEL_INSTANTIATION template void reduce_elements(float*, ReducedTerms, Index, Reduction);
REIGEN_KERNEL_INSTANTIATION template void reduce_elements(double*, ReducedTerms, Index, Reduction);
REIGEN_KERNEL_INSTANTIATION template void reduce_elements(bfloat16*, ReducedTerms, Index, Reduction);
REIGEN_KERNEL_INSTANTIATION template void reduce_elements(std::int8_t*, ReducedTerms, Index, Reduction);
REIGEN_KERNEL_INSTANTIATION template void reduce_elements(std::int16_t*, ReducedTerms, Index, Reduction);
REIGEN_KERNEL_INSTANTIATION template void reduce_elements(std::int32_t*, ReducedTerms, Index, Reduction);
REIGEN_KERNEL_INSTANTIATION template void reduce_elements(std::int64_t*, ReducedTerms, Index, Reduction);
REIGEN_KERNEL_INSTANTIATION template void reduce_elements(std::uint8_t*, ReducedTerms, Index, Reduction);
REIGEN_KERNEL_INSTANTIATION template void reduce_elements(std::uint16_t*, ReducedTerms, Index, Reduction);
REIGEN_KERNEL_INSTANTIATION template void reduce_elements(std::uint32_t*, ReducedTerms, Index, Reduction);
REIGEN_KERNEL_INSTANTIATION template void reduce_elements(std::uint64_t*, ReducedTerms, Index, Reduction);
} // namespace detail
#endif

} // namespace reigen::inline REIGEN_INSTRUCTION_SET
