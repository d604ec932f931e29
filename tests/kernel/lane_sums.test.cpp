#include <reigen/kernel/lane_sums.hpp>
#include <reigen/kernel/lanes.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

namespace lane_sums_test {

using namespace reigen::detail;

template <class T>
class lane_sums : public testing::Test {};
using Types = testing::Types<float, double>;
TYPED_TEST_SUITE(lane_sums, Types);

/// Adds up as many packets as one has lanes, `Count` of them at a time to begin with.
template <class T, int Count>
void expect_the_bits_of_one_alone() {
    constexpr int L = lanes<T>;
    if constexpr (Count <= L) {
        Packet<T> packets[L], begun[L / Count];
        T alone[L], together[L];
        for (int n = 0; n < L; ++n) {
            T numbers[L];
            for (int i = 0; i < L; ++i)
                numbers[i] = T(std::sin(7 * n + i)); // whose sum depends on the order
            packets[n] = load<T>(numbers);
            alone[n] = sum_of_lanes(reigen::detail::Lanes<T>{packets[n]});
        }
        for (int group = 0; group < L / Count; ++group) {
            LaneSums<T>::template begin<Count>(packets + group * Count);
            begun[group] = packets[group * Count];
        }
        store<T>(together, LaneSums<T>::template finish<Count>(begun));
        for (int n = 0; n < L; ++n)
            EXPECT_EQ(together[n], alone[n]) << n << " of " << L << ", begun by " << Count;
    }
}

TYPED_TEST(lane_sums, have_the_bits_of_one_alone_however_many_are_begun_at_once) {
    expect_the_bits_of_one_alone<TypeParam, 1>();
    expect_the_bits_of_one_alone<TypeParam, 2>();
    expect_the_bits_of_one_alone<TypeParam, 4>();
    expect_the_bits_of_one_alone<TypeParam, 8>();
}

} // namespace lane_sums_test
