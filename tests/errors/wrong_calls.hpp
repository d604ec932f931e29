#pragma once

#include "support/worlds.hpp"

#include <reigen/core/error.hpp>

#include <gtest/gtest.h>

#include <exception>
#include <functional>
#include <limits>
#include <string>
#include <vector>

// Tables of wrong calls: every rank makes every call, every rank must be told before anything has been sent.

namespace wrong_calls {

using namespace reigen;

inline constexpr double not_a_number = std::numeric_limits<double>::quiet_NaN();
inline constexpr double infinity = std::numeric_limits<double>::infinity();
inline constexpr Index huge = Index(1) << 62;
inline constexpr Index largest = std::numeric_limits<Index>::max();

enum class Refused { shape, argument }; // by a ShapeError, by an ArgumentError

struct WrongCall {
    std::string name;
    Refused with;
    std::string words; // that the message contains; %P stands for the number of ranks
    std::function<void(const Communicator&)> call;
    int least = 1; // ranks without which there is nothing wrong
};

inline Mesh over(const Communicator& world, Axes axis) {
    return {world, {{axis, world.size()}}};
}

inline std::string with_ranks(std::string words, int ranks) {
    for (auto place = words.find("%P"); place != std::string::npos; place = words.find("%P"))
        words.replace(place, 2, std::to_string(ranks));
    return words;
}

inline void expect_refused(const WrongCall& wrong, const Communicator& world) {
    SCOPED_TRACE(wrong.name);
    const auto expect_words = [&](const std::exception& error, Refused with) {
        EXPECT_EQ(with == Refused::shape, wrong.with == Refused::shape) << "the other kind of error: " << error.what();
        EXPECT_NE(std::string(error.what()).find(with_ranks(wrong.words, world.size())), std::string::npos)
            << error.what();
    };
    const Traffic before = world.traffic();
    try {
        wrong.call(world);
        ADD_FAILURE() << "accepted";
    } catch (const ShapeError& error) {
        expect_words(error, Refused::shape);
    } catch (const ArgumentError& error) {
        expect_words(error, Refused::argument);
    } catch (const std::exception& error) {
        ADD_FAILURE() << "another error: " << error.what();
    }
    EXPECT_EQ(world.traffic() - before, Traffic{});
}

/// All of them on every rank of every world; the ranks still understand each other afterwards.
inline void expect_refused(const std::vector<WrongCall>& calls) {
    on_every_world([&](const Communicator& world) {
        for (const WrongCall& wrong : calls)
            if (world.size() >= wrong.least)
                expect_refused(wrong, world);
        std::vector<int> ranks = {1};
        world.all_reduce(ranks);
        EXPECT_EQ(ranks[0], world.size());
    });
}

} // namespace wrong_calls
