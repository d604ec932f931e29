#pragma once

#include <reigen/kernel/amx/tiles.hpp>

#if defined(REIGEN_AMX)

#include <reigen/kernel/gemm_few_rows.hpp>
#include <reigen/kernel/prefetch.hpp>

#include <algorithm>

namespace reigen::inline REIGEN_INSTRUCTION_SET {
namespace detail {

// A product of few rows with a right factor that lies row after row, in packets but with the bits of tiles. Packed for
// tiles such a factor is read, written and read again, which takes 1.5 times as long for 1 to 4 rows, and less for 8.

/// Subnormal numbers count as 0 while this lives, as they do in tiles.
class SubnormalsAreZero {
  public:
    SubnormalsAreZero() { _mm_setcsr(before_ | flush_results | take_for_zero); }
    ~SubnormalsAreZero() { _mm_setcsr(before_); }
    SubnormalsAreZero(const SubnormalsAreZero&) = delete;
    SubnormalsAreZero& operator=(const SubnormalsAreZero&) = delete;

  private:
    static constexpr unsigned flush_results = 0x8000, take_for_zero = 0x0040;

    unsigned before_ = _mm_getcsr();
};

/// sums(i, p) += left(i, k) right(k, p) over one group of at most amx_k rows of the right factor: even and odd ones are
/// chains from zero. `load` gives packet p of row k.
template <int Height, class Load>
REIGEN_INLINE void add_group_to_rows(const float (&left)[Height][amx_k], Index rows, Load load_right,
                                     RowSums<float> sums, Index first, Index end) {
    for (Index p = first; p < end; ++p) {
        Packet<float> of_parity[2][Height];
        unrolled<2 * Height>([&](auto n) REIGEN_INLINE_LAMBDA { of_parity[n % 2][n / 2] = broadcast<float>(0); });
        for (Index k = 0; k < rows; k += 2)
            unrolled<2>([&](auto odd) REIGEN_INLINE_LAMBDA {
                if (k + odd == rows)
                    return;
                const Packet<float> row = load_right(k + odd, p);
                unrolled<Height>([&](auto i) REIGEN_INLINE_LAMBDA {
                    of_parity[odd][i] = multiply_add<float>(broadcast<float>(left[i][k + odd]), row, of_parity[odd][i]);
                });
            });
        unrolled<Height>([&](auto i) REIGEN_INLINE_LAMBDA {
            const Packet<float> group = Eigen::internal::padd(of_parity[0][i], of_parity[1][i]);
            store<float>(sums.at(i, p), Eigen::internal::padd(load<float>(sums.at(i, p)), group));
        });
    }
}

/// The same for Height rows of a left factor over one group, while the next one is on its way.
template <int Height>
void add_group_to_rows(Strided<const bfloat16> a, Strided<const bfloat16> b, RowSums<float> sums) {
    constexpr Index L = lanes<float>;
    float left[Height][amx_k];
    for (Index i = 0; i < Height; ++i)
        for (Index k = 0; k < a.cols; ++k)
            left[i][k] = float(a(i, k));
    const Index whole = b.cols / L;
    const auto load_whole = [&](Index k, Index p) REIGEN_INLINE_LAMBDA {
        prefetch(b.data + (k + amx_k) * b.row_stride + p * L);
        return load<float>(b.row(k) + p * L);
    };
    const auto load_rest = [&](Index k, Index p) REIGEN_INLINE_LAMBDA {
        return load_some<float>(b.row(k) + p * L, 1, int(b.cols - p * L));
    };
    add_group_to_rows<Height>(left, b.rows, load_whole, sums, 0, whole);
    if (whole * L < b.cols)
        add_group_to_rows<Height>(left, b.rows, load_rest, sums, whole, whole + 1);
}

/// sums = A B over one k-block.
inline void sum_few_rows(Strided<const bfloat16> a, Strided<const bfloat16> b, RowSums<float> sums) {
    const SubnormalsAreZero as_in_tiles;
    std::fill_n(sums.data, sums.taken(a.rows, sums.packets) * lanes<float>, 0.0F);
    for (Index k = 0; k < a.cols; k += amx_k) {
        const Index depth = std::min(amx_k, a.cols - k);
        const Strided<const bfloat16> right = b.block(k, 0, depth, b.cols);
        for (Index i = 0, height = 0; i < a.rows; i += height) {
            height = a.rows - i >= 4 ? 4 : a.rows - i >= 2 ? 2 : 1;
            const Strided<const bfloat16> left = a.block(i, k, height, depth);
            if (height == 4)
                add_group_to_rows<4>(left, right, sums.from_row(i));
            else if (height == 2)
                add_group_to_rows<2>(left, right, sums.from_row(i));
            else
                add_group_to_rows<1>(left, right, sums.from_row(i));
        }
    }
}

} // namespace detail
} // namespace reigen::inline REIGEN_INSTRUCTION_SET

#endif
