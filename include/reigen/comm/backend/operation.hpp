#pragma once

#include <reigen/core/error.hpp>
#include <reigen/core/types.hpp>

#include <algorithm>
#include <bit>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <ranges>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

namespace reigen::inline REIGEN_INSTRUCTION_SET {

/// How equal elements of several ranks become one. A NaN stays a NaN under max and min.
enum class Reduction : std::uint8_t { sum, max, min };

/// What a rank can ask of a communicator.
enum class Call : std::uint8_t {
    send,
    receive,
    all_reduce,
    all_gather,
    reduce_scatter,
    broadcast,
    all_to_all,
    barrier,
    agree
};

inline const char* to_string(Reduction reduction) {
    constexpr const char* names[] = {"sum", "max", "min"};
    return names[int(reduction)];
}

/// The element types that travel.
enum class DataType : std::uint8_t { float32, float64, bf16, int8, int16, int32, int64, uint8, uint16, uint32, uint64 };

inline const char* to_string(Call call) {
    constexpr const char* names[] = {"send",      "receive",    "all_reduce", "all_gather", "reduce_scatter",
                                     "broadcast", "all_to_all", "barrier",    "agree"};
    return names[int(call)];
}

inline const char* to_string(DataType type) {
    constexpr const char* names[] = {"float", "double", "bfloat16", "int8",   "int16", "int32",
                                     "int64", "uint8",  "uint16",   "uint32", "uint64"};
    return names[int(type)];
}

namespace detail {

template <class T>
inline constexpr bool is_number = std::is_same_v<T, float> || std::is_same_v<T, double> ||
                                  std::is_same_v<T, bfloat16> || (std::is_integral_v<T> && !std::is_same_v<T, bool>);

template <class T>
constexpr DataType integer_type() {
    constexpr int width = std::countr_zero(sizeof(T));
    return DataType(int(std::is_signed_v<T> ? DataType::int8 : DataType::uint8) + width);
}

} // namespace detail

/// What a communicator can carry: float, double, bfloat16 and the integers of 8 to 64 bits.
template <class T>
concept Element = detail::is_number<std::remove_cv_t<T>>;

/// A contiguous range of elements: std::span, std::vector, std::array, Buffer.
template <class Range>
concept ElementRange = std::ranges::contiguous_range<Range> && std::ranges::sized_range<Range> &&
                       Element<std::ranges::range_value_t<Range>>;

/// One that can be written to.
template <class Range>
concept WritableElementRange =
    ElementRange<Range> && !std::is_const_v<std::remove_reference_t<std::ranges::range_reference_t<Range>>>;

template <Element T>
constexpr DataType data_type() {
    if constexpr (std::is_same_v<T, float>)
        return DataType::float32;
    else if constexpr (std::is_same_v<T, double>)
        return DataType::float64;
    else if constexpr (std::is_same_v<T, bfloat16>)
        return DataType::bf16;
    else
        return detail::integer_type<T>();
}

/// Bytes of one element.
inline Index size_of(DataType type) {
    constexpr int sizes[] = {4, 8, 2, 1, 2, 4, 8, 1, 2, 4, 8};
    return sizes[int(type)];
}

class Backend;

/// One call with its types erased: what a backend, and whatever wraps a backend, sees of it.
///
/// Sizes and parts count elements. The memory stays valid until the operation is done; `parts` and `in_parts` only
/// until the call that starts it returns.
struct Operation {
    Call call = Call::barrier;
    DataType type = DataType::uint8;
    Reduction reduction = Reduction::sum;
    const std::byte* in = nullptr;
    Index in_size = 0;
    std::byte* out = nullptr; // equals `in` where a collective works in place
    Index out_size = 0;
    std::span<const Index> parts;    // of each rank: gathered from it, scattered to it, or sent to it
    std::span<const Index> in_parts; // all_to_all: received from each rank
    int peer = 0;                    // the other rank of a message, the root of a broadcast
    int tag = 0;                     // of a message; of a collective its order number on the communicator
    bool lend = false;               // a receive that only wants to read: the sender's memory will do (`Message`)
    bool counted = true;             // in `traffic`; one that serves another is counted with that
    bool blocks = false;             // whether the rank waits for its end before it does anything else
    std::optional<Call> part_of;     // the collective that a message belongs to
    std::string_view claim;          // agree: what the ranks are to have in common; until the starting call returns
    std::string_view group;          // the name of the communicator it was called on, which outlives the operation
    Backend* messages = nullptr;     // who carries the messages of a schedule; none: the backend that runs it
};

/// "all_reduce of 24 float", "receive of 3 int32, tag 7", "receive of 8 float for all_reduce".
inline std::string to_string(const Operation& operation) {
    const auto text = [&](Call call, Index size) {
        return call == Call::barrier || call == Call::agree
                   ? std::string(to_string(call))
                   : concat(to_string(call), " of ", size, ' ', to_string(operation.type));
    };
    const Index size = std::max(operation.in_size, operation.out_size);
    if (operation.part_of == Call::agree)
        return "the comparison of calls";
    if (operation.part_of)
        return concat(text(operation.call, size), " for ", to_string(*operation.part_of));
    const bool message = operation.call == Call::send || operation.call == Call::receive;
    return message ? concat(text(operation.call, size), ", tag ", operation.tag) : text(operation.call, size);
}

} // namespace reigen::inline REIGEN_INSTRUCTION_SET
