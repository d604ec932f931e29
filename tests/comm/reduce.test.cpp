#include <reigen/comm/collectives/reduce.hpp>

#include "comm/values.hpp"

#include <gtest/gtest.h>

#include <limits>

namespace reduce_test {

using reigen::reduce_in_order;

namespace {

template <class T>
std::vector<T> reduced(const std::vector<std::vector<T>>& terms, Reduction reduction = Reduction::sum) {
    std::vector<const std::byte*> pointers;
    for (const auto& term : terms)
        pointers.push_back(reinterpret_cast<const std::byte*>(term.data()));
    std::vector<T> result(terms[0].size());
    reduce_in_order(reigen::data_type<T>(), reduction, pointers, Index(result.size()),
                    reinterpret_cast<std::byte*>(result.data()));
    return result;
}

} // namespace

TEST(reduce, terms_are_added_from_the_left_across_block_boundaries) {
    for (int ranks = 1; ranks <= 9; ++ranks)
        for (const Index count : {1, 15, 1023, 1024, 1025, 3000}) {
            std::vector<std::vector<double>> terms;
            for (int r = 0; r < ranks; ++r)
                terms.push_back(wild_values<double>(r, count));
            std::vector<double> want = terms[0];
            for (std::size_t r = 1; r < terms.size(); ++r)
                for (std::size_t i = 0; i < want.size(); ++i)
                    want[i] += terms[r][i];
            EXPECT_TRUE(same_bits(reduced(terms), want)) << ranks << " terms of " << count;
        }
}

TEST(reduce, the_result_may_take_the_place_of_any_term) {
    for (std::size_t place = 0; place < 4; ++place) {
        std::vector<std::vector<float>> terms;
        for (int r = 0; r < 4; ++r)
            terms.push_back(wild_values<float>(r, 2000));
        const auto want = reduced(terms);
        std::vector<const std::byte*> pointers;
        for (const auto& term : terms)
            pointers.push_back(reinterpret_cast<const std::byte*>(term.data()));
        reduce_in_order(reigen::DataType::float32, Reduction::sum, pointers, 2000,
                        reinterpret_cast<std::byte*>(terms[place].data()));
        EXPECT_TRUE(same_bits(terms[place], want)) << "in place of term " << place;
    }
}

// TransformerEngine#1761
TEST(reduce, bfloat16_is_held_in_float) {
    const auto of = [](float x) { return std::vector<bfloat16>(3, bfloat16(x)); };
    const auto sum = reduced<bfloat16>({of(256), of(1), of(1), of(1), of(1)});
    for (const bfloat16 value : sum)
        EXPECT_EQ(float(value), 260);
    for (const bfloat16 value : reduced<bfloat16>({of(256), of(1)}))
        EXPECT_EQ(float(value), 256); // 257 lies between 256 and 258
}

TEST(reduce, a_nan_in_any_term_stays_under_max_and_min) {
    const float nan = std::numeric_limits<float>::quiet_NaN();
    for (const Reduction reduction : {Reduction::max, Reduction::min})
        for (std::size_t place = 0; place < 4; ++place) {
            std::vector<std::vector<float>> terms = {{1}, {2}, {3}, {4}};
            terms[place][0] = nan;
            EXPECT_TRUE(std::isnan(reduced(terms, reduction)[0])) << "term " << place;
        }
}

TEST(reduce, every_type_has_its_name_and_size) {
    EXPECT_STREQ(to_string(reigen::data_type<float>()), "float");
    EXPECT_STREQ(to_string(reigen::data_type<bfloat16>()), "bfloat16");
    EXPECT_STREQ(to_string(reigen::data_type<std::int8_t>()), "int8");
    EXPECT_STREQ(to_string(reigen::data_type<std::uint64_t>()), "uint64");
    EXPECT_EQ(reigen::data_type<long long>(), reigen::data_type<std::int64_t>());
    for_each_type([]<class T>() { EXPECT_EQ(reigen::size_of(reigen::data_type<T>()), Index(sizeof(T))); });
}

} // namespace reduce_test
