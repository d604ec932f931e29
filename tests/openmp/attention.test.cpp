#include "kernel/attention_cases.hpp"
#include "support/bits.hpp"

#include <omp.h>

#include <atomic>
#include <chrono>
#include <thread>

namespace attention_on_threads_test {

using namespace attention_cases;
using reigen::Accumulator;
using reigen::bfloat16;

/// Everything that attention computes, as it lies in memory.
template <class S>
struct Results {
    Heads<S> out, dq;
    Heads<Accumulator<S>> dk, dv;
    std::vector<Accumulator<S>> lse;

    Strided<Accumulator<S>> lse_view() { return {lse.data(), out.batch * out.tokens, out.heads, out.heads, 1}; }
};

template <class S>
bool same(const Results<S>& a, const Results<S>& b) {
    return same_bits(a.out.memory, b.out.memory) && same_bits(a.dq.memory, b.dq.memory) &&
           same_bits(a.dk.memory, b.dk.memory) && same_bits(a.dv.memory, b.dv.memory) && same_bits(a.lse, b.lse);
}

/// Forward and backward of two blocks of keys, on so many threads.
template <class S>
Results<S> attend_on(int threads, const ReferenceProblem& p) {
    using T = Accumulator<S>;
    const Index queries = p.q.tokens, keys = p.k.tokens, half = keys / 2;
    const Heads<S> q(p.q);
    Results<S> result = {{p.q.batch, queries, p.q.heads, p.v.dim},
                         {p.q.batch, queries, p.q.heads, p.q.dim},
                         {p.k.batch, keys, p.k.heads, p.k.dim},
                         {p.v.batch, keys, p.v.heads, p.v.dim},
                         std::vector<T>(std::size_t(p.q.batch * queries * p.q.heads))};
    result.dk.zero();
    result.dv.zero();
    const auto part_of = [](auto view, const Runs& tokens) {
        view.data += tokens[0] * view.token_stride;
        view.tokens = tokens.size();
        return view;
    };
    const Heads<S> k(p.k), v(p.v);
    const std::vector<Runs> blocks = {Runs::range(half, keys - half), Runs::range(0, half)};
    omp_set_num_threads(threads);
    AttentionState<S> state(q.view(), Runs::range(0, queries), p.k.heads, p.v.dim, rule(p));
    for (const Runs& block : blocks)
        state.absorb(part_of(k.view(), block), part_of(v.view(), block), block);
    state.finish(result.out.view(), result.lse_view());
    AttentionGradient<S> gradient({q.view(), result.out.view(), result.out.view(), result.lse_view()},
                                  Runs::range(0, queries), p.k.heads, rule(p));
    for (const Runs& block : blocks)
        gradient.absorb(part_of(k.view(), block), part_of(v.view(), block), block, part_of(result.dk.view(), block),
                        part_of(result.dv.view(), block));
    gradient.finish(result.dq.view());
    return result;
}

template <class S>
void expect_same_bits_on_any_number_of_threads(const Shape& shape, const Mask& mask) {
    const ReferenceProblem p = problem(shape, mask);
    const Results<S> alone = attend_on<S>(1, p);
    for (const int threads : {2, 3})
        EXPECT_TRUE(same(attend_on<S>(threads, p), alone))
            << shape.text() << ", " << to_string(mask) << ", on " << threads << " threads";
}

template <class S>
class attention_on_threads : public testing::Test {};
using Types = testing::Types<float, double, bfloat16>;
TYPED_TEST_SUITE(attention_on_threads, Types);

TYPED_TEST(attention_on_threads, their_number_changes_no_bit_of_many_queries) {
    for (const Mask& mask : {Mask::everything(), Mask::causal(), Mask::window(300, 20)})
        for (const Shape& shape : {Shape{1, 700, 2200, 1, 1, 64, 48}, {2, 350, 1100, 6, 3, 40, 24}})
            expect_same_bits_on_any_number_of_threads<TypeParam>(shape, mask);
}

TYPED_TEST(attention_on_threads, their_number_changes_no_bit_of_a_few) {
    for (const Mask& mask : {Mask::everything(), Mask::causal()})
        for (const Shape& shape : {Shape{1, 1, 9001, 3, 3, 64, 64}, {2, 2, 5000, 6, 2, 40, 80}})
            expect_same_bits_on_any_number_of_threads<TypeParam>(shape, mask);
}

TEST(attention_on_threads, nothing_is_allocated_while_they_absorb_and_none_but_the_caller_polls) {
    struct Polls {
        std::thread::id caller = std::this_thread::get_id();
        std::atomic<Index> of_others = 0;
    } polls;
    const auto count = [](void* context) noexcept {
        auto& seen = *static_cast<Polls*>(context);
        seen.of_others += std::this_thread::get_id() != seen.caller;
    };
    const ReferenceProblem p = problem({1, 700, 1100, 3, 3, 64, 64}, Mask::causal());
    const Heads<float> q(p.q), k(p.k), v(p.v);
    omp_set_num_threads(2);
    AttentionState<float> state(q.view(), Runs::range(0, 700), 3, 64, rule(p));
    const Index allocations = reigen::memory_account()->allocations();
    const reigen::PollHook before = reigen::exchange_poll_hook({count, &polls});
    state.absorb(k.view(), v.view(), Runs::range(0, 1100));
    reigen::exchange_poll_hook(before);
    EXPECT_EQ(reigen::memory_account()->allocations(), allocations);
    EXPECT_EQ(polls.of_others, 0);
}

TEST(attention_on_threads, units_are_handed_out_in_order_and_each_once) {
    omp_set_num_threads(3);
    std::vector<int> done(100), last(3, -1);
    reigen::detail::for_each_unit(3, 100, [&](Index thread, Index unit) {
        ++done[std::size_t(unit)];
        EXPECT_LT(last[std::size_t(thread)], int(unit));
        last[std::size_t(thread)] = int(unit);
    });
    EXPECT_EQ(done, std::vector<int>(100, 1));
}

TEST(attention_on_threads, units_are_worked_on_at_once) {
    omp_set_num_threads(2);
    std::atomic<bool> second_has_begun = false;
    std::atomic<Index> on_time = 0;
    reigen::detail::for_each_unit(2, 2, [&](Index, Index unit) {
        second_has_begun = second_has_begun || unit == 1;
        const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(60);
        while (!second_has_begun && std::chrono::steady_clock::now() < end)
            std::this_thread::yield();
        on_time += second_has_begun;
    });
    EXPECT_EQ(on_time, 2);
}

} // namespace attention_on_threads_test
