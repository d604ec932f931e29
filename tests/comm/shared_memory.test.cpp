#include <reigen/comm/faulty.hpp>
#include <reigen/comm/shared_memory/collectives.hpp>
#include <reigen/comm/shared_memory/heap.hpp>
#include <reigen/comm/threads.hpp>

#include "comm/values.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <set>

namespace shared_memory_test {

using reigen::Backend;
using reigen::DisagreementError;
using reigen::Operation;
using reigen::PeerError;
using reigen::ShapeError;
using reigen::TimeoutError;
using reigen::detail::Segment;
using reigen::detail::SharedHeap;
using reigen::detail::SlotCollectives;
using reigen::detail::Slots;
using reigen::detail::SlotShape;

namespace {

/// The slots of a group of threads, in memory that is not theirs.
class Memory {
  public:
    Memory(int ranks, SlotShape shape) : shape_(shape), bytes_(std::size_t(ranks * shape.bytes() + 64)) {
        auto* first = bytes_.data();
        while (reinterpret_cast<std::uintptr_t>(first) % 64 != 0)
            ++first;
        for (int rank = 0; rank < ranks; ++rank) {
            parts_.push_back(first + rank * shape.bytes());
            Slots::prepare(parts_.back(), shape);
        }
    }

    Slots slots(int rank) const { return Slots(parts_, rank, shape_); }

  private:
    SlotShape shape_;
    std::vector<std::byte> bytes_;
    std::vector<std::byte*> parts_;
};

/// Collectives through slots, and nothing else.
class SlotsAlone final : public Backend {
  public:
    explicit SlotsAlone(Slots slots) : rank_(slots.rank()), size_(slots.size()), collectives_(std::move(slots)) {}

    int rank() const override { return rank_; }
    int size() const override { return size_; }
    std::unique_ptr<reigen::Message> start_message(const Operation&) override { return nullptr; }
    std::shared_ptr<Backend> split(int, std::span<const int>) override { return nullptr; }
    std::unique_ptr<reigen::Started> start_collective(const Operation& operation) override {
        return collectives_.start(operation);
    }

  private:
    int rank_;
    int size_;
    SlotCollectives collectives_;
};

/// Runs the body on 2 to 5 ranks, with a communicator over slots of this shape.
template <class Body>
void with_slots(SlotShape shape, const Body& body) {
    for (const int ranks : {2, 3, 5}) {
        const Memory memory(ranks, shape);
        reigen::run_threads(ranks, [&](const Communicator& world) {
            SCOPED_TRACE(reigen::concat("rank ", world.rank(), " of ", ranks, ", ", shape.slots, " slots of ",
                                        shape.payload, " bytes"));
            const Communicator through(std::make_shared<SlotsAlone>(memory.slots(world.rank())));
            through.set_deadline(30);
            body(through, world);
        });
    }
}

const std::vector<SlotShape> shapes = {{2, 320}, {3, 512}, {4, 4096}};
const std::vector<Index> counts = {0, 1, 5, 63, 64, 65, 200, 1000, 5003};

/// Parts without a pattern, of which some are empty.
std::vector<Index> parts_of(int ranks, Index scale) {
    std::vector<Index> parts;
    for (int r = 0; r < ranks; ++r)
        parts.push_back((r * r + 3 * r + 1) % 5 * scale);
    return parts;
}

} // namespace

// The threads' own way, messages in memory of their own, is what it is compared with.

TEST(shared_memory, all_reduce_has_the_bits_of_messages_in_any_number_of_chunks) {
    for (const SlotShape& shape : shapes)
        with_slots(shape, [](const Communicator& through, const Communicator& world) {
            for_each_type([&]<class T>() {
                for (const Index count : counts) {
                    auto values = small_values<T>(world.rank(), count);
                    if constexpr (!std::is_integral_v<T>)
                        values = wild_values<T>(world.rank(), count);
                    auto want = values;
                    through.all_reduce(values);
                    faulty(world, {}).all_reduce(want);
                    EXPECT_TRUE(same_bits(values, want)) << count << ' ' << to_string(reigen::data_type<T>());
                }
            });
        });
}

TEST(shared_memory, reduce_scatter_and_all_gather_take_uneven_and_empty_parts) {
    for (const SlotShape& shape : shapes)
        with_slots(shape, [](const Communicator& through, const Communicator& world) {
            for (const Index scale : {1, 17, 300}) {
                const auto parts = parts_of(world.size(), scale);
                const auto mine = std::size_t(parts[std::size_t(world.rank())]);
                const auto all = wild_values<float>(world.rank(), total(parts));
                std::vector<float> sums(mine), want_sums(mine);
                through.reduce_scatter(all, sums, Reduction::sum, parts);
                world.reduce_scatter(all, want_sums, Reduction::sum, parts);
                EXPECT_TRUE(same_bits(sums, want_sums)) << scale;
                std::vector<float> gathered(all.size(), -1), want(all.size(), -2);
                through.all_gather(sums, gathered, parts);
                world.all_gather(sums, want, parts);
                EXPECT_TRUE(same_bits(gathered, want)) << scale;
            }
        });
}

TEST(shared_memory, a_root_may_go_ahead_of_those_it_tells) {
    for (const SlotShape& shape : shapes)
        with_slots(shape, [](const Communicator& through, const Communicator& world) {
            for (int root = 0; root < world.size(); ++root)
                for (const Index count : counts) {
                    auto values = wild_values<double>(world.rank(), count);
                    through.broadcast(values, root);
                    EXPECT_TRUE(same_bits(values, wild_values<double>(root, count))) << count;
                }
        });
}

TEST(shared_memory, all_to_all_goes_on_as_long_as_any_rank_needs) {
    for (const SlotShape& shape : shapes)
        with_slots(shape, [](const Communicator& through, const Communicator& world) {
            const auto part = [](int from, int to) { return Index((3 * from + 5 * to) % 4) * (from == 1 ? 90 : 1); };
            std::vector<Index> out_parts, in_parts;
            for (int peer = 0; peer < world.size(); ++peer) {
                out_parts.push_back(part(world.rank(), peer));
                in_parts.push_back(part(peer, world.rank()));
            }
            const auto out = wild_values<float>(world.rank(), total(out_parts));
            std::vector<float> in(static_cast<std::size_t>(total(in_parts))), want(in.size());
            for (int again = 0; again < 3; ++again) {
                through.all_to_all(out, out_parts, in, in_parts);
                world.all_to_all(out, out_parts, want, in_parts);
                EXPECT_TRUE(same_bits(in, want));
                through.barrier();
            }
        });
}

TEST(shared_memory, long_memory_goes_round_the_slots_in_smaller_chunks) {
    with_slots({3, 65536}, [](const Communicator& through, const Communicator& world) {
        const auto parts = parts_of(world.size(), 40001);
        const auto mine = std::size_t(parts[std::size_t(world.rank())]);
        const auto all = wild_values<float>(world.rank(), total(parts));
        auto sums = all, want = all;
        through.all_reduce(sums);
        world.all_reduce(want);
        EXPECT_TRUE(same_bits(sums, want));
        std::vector<float> part(mine), want_part(mine);
        through.reduce_scatter(all, part, Reduction::sum, parts);
        world.reduce_scatter(all, want_part, Reduction::sum, parts);
        EXPECT_TRUE(same_bits(part, want_part));
        through.all_gather(part, sums, parts);
        EXPECT_TRUE(same_bits(sums, want));
        through.broadcast(sums, world.size() - 1);
        EXPECT_TRUE(same_bits(sums, want));
        const auto gives = [](int from, int to) { return from == 0 ? Index(40001 + to) : Index(to); };
        std::vector<Index> out_parts, in_parts;
        for (int peer = 0; peer < world.size(); ++peer) {
            out_parts.push_back(gives(world.rank(), peer));
            in_parts.push_back(gives(peer, world.rank()));
        }
        const auto out = wild_values<float>(world.rank(), total(out_parts));
        std::vector<float> in(std::size_t(total(in_parts))), want_in(in.size());
        through.all_to_all(out, out_parts, in, in_parts);
        world.all_to_all(out, out_parts, want_in, in_parts);
        EXPECT_TRUE(same_bits(in, want_in));
    });
}

TEST(shared_memory, two_ranks_write_next_where_they_have_read_last) {
    constexpr SlotShape shape{3, 320};
    const Memory pair(2, shape);
    const Memory three(3, shape);
    for (std::uint64_t step = 0; step < 9; ++step) {
        EXPECT_EQ(pair.slots(0).own_payload(step + 3), pair.slots(0).payload(1, step));
        EXPECT_EQ(pair.slots(0).own_payload(step), pair.slots(1).payload(0, step));
        EXPECT_EQ(three.slots(0).own_payload(step + 3), three.slots(0).own_payload(step));
    }
}

TEST(shared_memory, what_is_started_ends_in_the_order_of_its_start_whatever_is_waited_for_first) {
    with_slots({2, 320}, [](const Communicator& through, const Communicator& world) {
        std::vector<reigen::Pending<float>> pending;
        for (Index k = 0; k < 5; ++k)
            pending.push_back(through.start_all_reduce(buffer_of(small_values<float>(world.rank(), 100 * k))));
        for (Index k = 4; k >= 0; --k) {
            auto want = small_values<float>(world.rank(), 100 * k);
            world.all_reduce(want);
            EXPECT_EQ(vector_of(pending[std::size_t(k)].wait()), want);
        }
    });
}

TEST(shared_memory, ranks_that_differ_are_told_so) {
    with_slots({2, 512}, [](const Communicator& through, const Communicator& world) {
        std::vector<float> values(world.rank() == 1 ? 300 : 5);
        const auto words = words_of<ShapeError>([&] { through.all_reduce(values); });
        EXPECT_NE(words.find("bytes, rank "), std::string::npos) << words;
        EXPECT_TRUE(through.failed());
        world.barrier();
    });
    with_slots({2, 512}, [](const Communicator& through, const Communicator& world) {
        std::vector<float> values(5);
        const auto words = words_of<DisagreementError>([&] {
            if (world.rank() == 1)
                through.broadcast(values, 0);
            else
                through.all_reduce(values);
        });
        EXPECT_NE(words.find("calls something else"), std::string::npos) << words;
        world.barrier();
    });
    with_slots({2, 512}, [](const Communicator& through, const Communicator& world) {
        std::vector<Index> parts(std::size_t(world.size()), 2);
        std::vector<Index> in_parts = parts;
        in_parts[std::size_t((world.rank() + 1) % world.size())] = 3;
        std::vector<float> out(std::size_t(total(parts))), in(std::size_t(total(in_parts)));
        const auto words = words_of<reigen::Error>([&] { through.all_to_all(out, parts, in, in_parts); });
        EXPECT_NE(words.find("takes 3"), std::string::npos) << words;
        world.barrier();
    });
}

TEST(shared_memory, who_gives_up_wakes_the_others) {
    with_slots({2, 512}, [](const Communicator& through, const Communicator& world) {
        std::vector<float> values(5);
        if (world.rank() == 0) {
            through.set_deadline(0.05);
            const auto words = words_of<TimeoutError>([&] { through.all_reduce(values); });
            EXPECT_NE(words.find("in all_reduce of 5 float"), std::string::npos) << words;
        }
        world.barrier();
        if (world.rank() > 0) {
            const auto words = words_of<PeerError>([&] {
                through.all_reduce(values);
                through.all_reduce(values); // a rank that had filled its slot may be read once more
            });
            EXPECT_NE(words.find("rank 0 has given up"), std::string::npos) << words;
        }
        world.barrier();
    });
}

TEST(shared_memory, a_heap_gives_each_block_once_and_joins_what_comes_back) {
    constexpr Index page = 4096;
    SharedHeap heap(16 * page);
    std::vector<void*> blocks;
    for (int i = 0; i < 4; ++i)
        blocks.push_back(heap.take(std::size_t(4 * page - i)));
    EXPECT_EQ(std::set<void*>(blocks.begin(), blocks.end()).size(), 4U);
    EXPECT_EQ(heap.take(1), nullptr); // all is taken
    for (const int i : {2, 0, 1, 3}) {
        std::memset(blocks[std::size_t(i)], i, std::size_t(4 * page - i));
        EXPECT_TRUE(heap.give_back(blocks[std::size_t(i)], std::size_t(4 * page - i)));
    }
    void* const whole = heap.take(16 * page);
    EXPECT_NE(whole, nullptr);
    EXPECT_EQ(heap.take(1), nullptr);
    EXPECT_TRUE(heap.give_back(whole, 16 * page));
    int elsewhere = 0;
    EXPECT_FALSE(heap.give_back(&elsewhere, sizeof elsewhere));
    // Of two holes the one that fits.
    void* const large = heap.take(6 * page);
    void* const between = heap.take(page);
    void* const small = heap.take(2 * page);
    void* const rest = heap.take(7 * page);
    EXPECT_TRUE(heap.give_back(large, 6 * page) && heap.give_back(small, 2 * page));
    EXPECT_EQ(heap.take(2 * page), small);
    EXPECT_EQ(heap.take(6 * page), large);
    EXPECT_NE(between, rest);
}

TEST(shared_memory, a_segment_is_seen_by_who_attaches_to_it) {
    constexpr Index bytes = 10000;
    Segment mine = Segment::make(bytes);
    const Segment other = Segment::attach_to_read(mine.name(), bytes);
    EXPECT_NE(mine.data(), other.data());
    auto wrong = mine.name();
    ++wrong.number;
    EXPECT_THROW(Segment::attach_to_read(wrong, bytes), reigen::CommunicationError);
    EXPECT_THROW(Segment::attach_to_read(mine.name(), bytes + 1), reigen::CommunicationError);
    std::memset(mine.data(), 7, bytes);
    EXPECT_EQ(other.data()[bytes - 1], std::byte(7));
    mine.close_file();
    EXPECT_THROW(Segment::attach(mine.name(), bytes), reigen::CommunicationError);
    EXPECT_EQ(other.data()[0], std::byte(7)); // who has it keeps it
}

} // namespace shared_memory_test
