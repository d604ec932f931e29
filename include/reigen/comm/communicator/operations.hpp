#pragma once

#include <reigen/comm/backend/operation.hpp>
#include <reigen/comm/communicator/parts.hpp>
#include <reigen/comm/communicator/ranges.hpp>
#include <reigen/core/error.hpp>

#include <cstddef>
#include <span>
#include <type_traits>

namespace reigen::inline REIGEN_INSTRUCTION_SET::detail {

inline constexpr int max_tag = (1 << 14) - 1;

/// Elements that are read, without their type.
struct Source {
    DataType type;
    const std::byte* data;
    Index size;
};

/// Elements that are written, without their type.
struct Target {
    DataType type;
    std::byte* data;
    Index size;
};

template <class Range>
constexpr DataType element_type() {
    return data_type<std::remove_cv_t<std::ranges::range_value_t<Range>>>();
}

template <class Range>
Source source(const Range& in) {
    return {element_type<Range>(), reinterpret_cast<const std::byte*>(std::ranges::data(in)),
            Index(std::ranges::size(in))};
}

template <class Range>
Target target(Range& out) {
    return {element_type<Range>(), reinterpret_cast<std::byte*>(std::ranges::data(out)), Index(std::ranges::size(out))};
}

/// What a caller asks for as an `Operation`, checked as far as its rank can see.
///
/// Throws  ArgumentError, ShapeError
class Operations {
  public:
    Operations(int rank, int size) : rank_(rank), size_(size) {}

    Operation send(Source in, int to, int tag) const {
        Operation operation = message(Call::send, to, tag);
        read(operation, in);
        return operation;
    }

    Operation receive(Target out, int from, int tag) const {
        Operation operation = message(Call::receive, from, tag);
        write(operation, out);
        return operation;
    }

    static Operation all_reduce(Target in_place, Reduction reduction) {
        Operation operation = between(Call::all_reduce, as_source(in_place), in_place);
        operation.reduction = reduction;
        return operation;
    }

    Operation all_gather(Source mine, Target all, std::span<const Index> parts) const {
        Operation operation = between(Call::all_gather, mine, all);
        operation.parts = parts;
        check_own_part("all_gather", parts, rank_, size_, mine.size, all.size);
        require_apart_or_in_place(operation, rank_);
        return operation;
    }

    Operation reduce_scatter(Source all, Target mine, Reduction reduction, std::span<const Index> parts) const {
        Operation operation = between(Call::reduce_scatter, all, mine);
        operation.reduction = reduction;
        operation.parts = parts;
        check_own_part("reduce_scatter", parts, rank_, size_, mine.size, all.size);
        require_apart_or_in_place(operation, rank_);
        return operation;
    }

    Operation broadcast(Target in_place, int root) const {
        Operation operation = between(Call::broadcast, as_source(in_place), in_place);
        operation.peer = root;
        require(root >= 0 && root < size_, "broadcast: root ", root, " of ", size_);
        return operation;
    }

    Operation all_to_all(Source out, std::span<const Index> out_parts, Target in,
                         std::span<const Index> in_parts) const {
        Operation operation = between(Call::all_to_all, out, in);
        operation.parts = out_parts;
        operation.in_parts = in_parts;
        check_parts("all_to_all: out", out_parts, size_, out.size);
        check_parts("all_to_all: in", in_parts, size_, in.size);
        const auto self = std::size_t(rank_);
        require<ShapeError>(out_parts[self] == in_parts[self], "all_to_all: rank ", rank_, " gives itself ",
                            out_parts[self], " elements and takes ", in_parts[self]);
        require(!ranges_overlap(operation), "all_to_all: the ranges overlap");
        return operation;
    }

  private:
    static Source as_source(Target range) { return {range.type, range.data, range.size}; }

    static void read(Operation& operation, Source in) {
        operation.type = in.type;
        operation.in = in.data;
        operation.in_size = in.size;
    }

    static void write(Operation& operation, Target out) {
        operation.type = out.type;
        operation.out = out.data;
        operation.out_size = out.size;
    }

    static Operation between(Call call, Source in, Target out) {
        Operation operation;
        operation.call = call;
        read(operation, in);
        write(operation, out);
        return operation;
    }

    Operation message(Call call, int peer, int tag) const {
        Operation operation;
        operation.call = call;
        operation.peer = peer;
        operation.tag = tag;
        require(peer >= 0 && peer < size_, to_string(call), ": rank ", peer, " of ", size_);
        require(peer != rank_, to_string(call), ": rank ", peer, " to itself; copy instead");
        require(tag >= 0 && tag <= max_tag, to_string(call), ": tag ", tag, "; want 0 to ", max_tag);
        return operation;
    }

    int rank_;
    int size_;
};

/// What is the same for all operations: there is such a reduction, and memory where there are elements.
inline void check_memory(const Operation& operation) {
    const char* const name = to_string(operation.call);
    require(operation.reduction <= Reduction::min, name, ": there is no reduction ", int(operation.reduction));
    require(operation.in != nullptr || operation.in_size == 0, name, ": null data, ", operation.in_size, " elements");
    require(operation.out != nullptr || operation.out_size == 0, name, ": null data, ", operation.out_size,
            " elements");
}

} // namespace reigen::inline REIGEN_INSTRUCTION_SET::detail
