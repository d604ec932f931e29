#include <reigen/core/buffer.hpp>

#include <gtest/gtest.h>

#include <cinttypes>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <string>
#include <thread>

namespace buffer_test {

using namespace reigen;

namespace {

Index held(MemoryUse use) {
    return memory_account()->of(use).current;
}

} // namespace

TEST(buffer, is_aligned_and_counted_while_it_lives) {
    const Index before = held(MemoryUse::weights);
    {
        const MemoryScope scope(MemoryUse::weights);
        const Buffer<float> buffer(3);
        EXPECT_EQ(reinterpret_cast<std::uintptr_t>(buffer.data()) % 64, 0U);
        EXPECT_EQ(held(MemoryUse::weights), before + 12);
    }
    EXPECT_EQ(held(MemoryUse::weights), before);
}

TEST(buffer, moves_carry_the_memory_and_its_count) {
    const Index before = held(MemoryUse::activations);
    Buffer<double> a = Buffer<double>::zeros(4);
    const double* data = a.data();
    Buffer<double> b = std::move(a);
    EXPECT_EQ(b.data(), data);
    EXPECT_TRUE(a.empty()); // NOLINT(bugprone-use-after-move): a moved-from buffer is an empty one
    b = Buffer<double>(1);
    EXPECT_EQ(held(MemoryUse::activations), before + 8);
}

TEST(buffer, a_scope_ends_with_its_block_also_when_nested) {
    const MemoryScope outer(MemoryUse::gradients);
    {
        const MemoryScope inner(MemoryUse::optimizer);
        EXPECT_EQ(current_memory_use(), MemoryUse::optimizer);
    }
    EXPECT_EQ(current_memory_use(), MemoryUse::gradients);
}

TEST(buffer, entries_tell_split_objects_from_replicated_ones) {
    const auto bytes_of = [](Axes split) {
        const auto entries = memory_account()->entries();
        const auto found = entries.find({MemoryUse::weights, split});
        return found == entries.end() ? Index(0) : found->second.current;
    };
    const MemoryScope scope(MemoryUse::weights);
    const Index split_before = bytes_of(tp);
    const Index whole_before = bytes_of(Axes::none);
    const Buffer<float> split(10, tp);
    const Buffer<float> whole(1);
    EXPECT_EQ(bytes_of(tp), split_before + 40);
    EXPECT_EQ(bytes_of(Axes::none), whole_before + 4);
}

TEST(buffer, freed_by_another_thread_leaves_its_owners_account) {
    const Index before = held(MemoryUse::activations);
    Buffer<float> buffer(100);
    std::thread([moved = std::move(buffer)]() mutable { const Buffer<float> end = std::move(moved); }).join();
    EXPECT_EQ(held(MemoryUse::activations), before);
}

TEST(buffer, peaks_remember_the_most_held_at_once) {
    const MemoryScope scope(MemoryUse::workspace);
    memory_account()->reset_peaks();
    const Index before = held(MemoryUse::workspace);
    {
        const Buffer<float> a(10);
        const Buffer<float> b(10);
    }
    const Buffer<float> c(10);
    EXPECT_EQ(memory_account()->of(MemoryUse::workspace).peak, before + 80);
}

TEST(buffer, can_be_filled_with_a_byte_to_show_reads_before_writes) {
    memory_account()->fill_new_buffers(0xff);
    const Buffer<float> poisoned(5);
    memory_account()->fill_new_buffers(std::nullopt);
    for (const float value : poisoned)
        EXPECT_TRUE(std::isnan(value));
}

TEST(buffer, negative_sizes_are_refused) {
    EXPECT_THROW(Buffer<float>(-1), ArgumentError);
}

TEST(buffer, of_a_source_only_where_others_may_read_it) {
    class OneBlock final : public BufferSource {
      public:
        void* take(std::size_t) noexcept override { return block_; }
        bool give_back(void* memory, std::size_t) noexcept override { return memory == block_; }
        bool gave(const void* memory) const { return memory == block_; }

      private:
        alignas(64) std::byte block_[least_bytes];
    };
    static OneBlock source;
    set_buffer_source(&source);
    const bool shared = source.gave(Buffer<std::byte>(Index(BufferSource::least_bytes)).data());
    const Buffer<std::byte> own(Index(BufferSource::least_bytes), Axes::none, Readers::none);
    const bool alone = source.gave(own.data());
    set_buffer_source(nullptr);
    EXPECT_TRUE(shared);
    EXPECT_FALSE(alone);
}

// The flags of a mapping, after its range "first-end".
TEST(buffer, asks_for_huge_pages_where_it_is_long) {
    const bool system_has_some = bool(std::ifstream("/sys/kernel/mm/transparent_hugepage/enabled"));
    const Buffer<std::byte> buffer(Index(16) << 20);
    const auto middle = reinterpret_cast<std::uintptr_t>(buffer.data()) + (std::size_t(8) << 20);
    std::ifstream maps("/proc/self/smaps");
    bool inside = false;
    std::string flags;
    for (std::string line; std::getline(maps, line) && flags.empty();) {
        std::uintptr_t first = 0, end = 0;
        if (std::sscanf(line.c_str(), "%" SCNxPTR "-%" SCNxPTR " ", &first, &end) == 2)
            inside = first <= middle && middle < end;
        else if (inside && line.starts_with("VmFlags:"))
            flags = line + ' ';
    }
    EXPECT_EQ(flags.find(" hg ") != std::string::npos, system_has_some) << flags;
}

} // namespace buffer_test
