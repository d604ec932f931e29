#include <reigen/core/error.hpp>
#include <reigen/core/poll.hpp>
#include <reigen/core/types.hpp>

#include <gtest/gtest.h>

#include <thread>

namespace types_test {

using namespace reigen;

static_assert((dp | tp) - tp == dp);
static_assert(contains(dp | tp, tp) && !contains(dp, dp | tp) && contains(dp, Axes::none));
static_assert(disjoint(dp | tp, cp) && !disjoint(dp | tp, tp));
static_assert(count(dp | cp | ep) == 3);
static_assert(std::is_same_v<Accumulator<bfloat16>, float> && std::is_same_v<Accumulator<const double>, double>);

TEST(types, axes_are_written_in_a_fixed_order) {
    EXPECT_EQ(to_string(tp | dp), "dp|tp");
    EXPECT_EQ(to_string(Axes::none), "none");
}

TEST(error, require_throws_the_named_error_with_all_parts) {
    require(true, "not looked at");
    try {
        require<ShapeError>(false, "matmul: a is ", shape(4, 12), ", b is ", shape(10, 8));
        FAIL() << "nothing was thrown";
    } catch (const ShapeError& error) {
        EXPECT_STREQ(error.what(), "matmul: a is 4x12, b is 10x8");
    }
}

TEST(poll, calls_the_hook_of_this_thread_only) {
    int calls = 0;
    const PollHook before = exchange_poll_hook({[](void* context) noexcept { ++*static_cast<int*>(context); }, &calls});
    poll();
    std::thread([] { poll(); }).join();
    EXPECT_EQ(calls, 1);
    exchange_poll_hook(before);
    poll();
    EXPECT_EQ(calls, 1);
}

} // namespace types_test
