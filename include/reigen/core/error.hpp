#pragma once

#include <reigen/core/instruction_set.hpp>

#include <cstddef>
#include <initializer_list>
#include <sstream>
#include <stdexcept>
#include <string>

namespace reigen::inline REIGEN_INSTRUCTION_SET {

/// Base of everything the library throws.
struct Error : std::runtime_error {
    using std::runtime_error::runtime_error;
};

/// Shapes or partitions that do not fit together. Thrown on every rank before any message.
struct ShapeError : Error {
    using Error::Error;
};

/// A wrong argument, or options that do not combine. Thrown on every rank before any message.
struct ArgumentError : Error {
    using Error::Error;
};

/// Ranks that called different things. Thrown on every rank, listing what each called.
struct DisagreementError : Error {
    using Error::Error;
};

/// A wait that passed its deadline; says who waited for whom, in what, and how long.
struct TimeoutError : Error {
    using Error::Error;
};

/// Another rank failed or left while this one still waited for it.
struct PeerError : Error {
    using Error::Error;
};

/// The transport below a communicator reported an error.
struct CommunicationError : Error {
    using Error::Error;
};

namespace detail {

/// Something that `std::ostream` prints, without its type: a message is then written by the same code whatever its parts
/// are. Compiled for every list of types anew, messages were a tenth of the code of a user's file.
class MessagePart {
  public:
    MessagePart(const char* text)
        : part_(text), print_([](std::ostream& out, const void* part) { out << static_cast<const char*>(part); }) {}

    template <class Part>
    MessagePart(const Part& part)
        : part_(static_cast<const void*>(&part)),
          print_([](std::ostream& out, const void* at) { out << *static_cast<const Part*>(at); }) {}

    void print(std::ostream& out) const { print_(out, part_); }

  private:
    const void* part_;
    void (*print_)(std::ostream&, const void*);
};

inline std::string joined(std::initializer_list<MessagePart> parts) {
    std::ostringstream out;
    for (const MessagePart& part : parts)
        part.print(out);
    return out.str();
}

template <class Exception>
[[noreturn, gnu::noinline, gnu::cold]] void raise(std::initializer_list<MessagePart> parts) {
    throw Exception(joined(parts));
}

} // namespace detail

/// The parts written one after the other, as `std::ostream` prints them.
template <class... Parts>
std::string concat(const Parts&... parts) {
    return detail::joined({detail::MessagePart(parts)...});
}

/// Throws `Exception` with the concatenated parts unless the condition holds; costs one branch when it does.
template <class Exception = ArgumentError, class... Parts>
void require(bool condition, const Parts&... parts) {
    if (!condition) [[unlikely]]
        detail::raise<Exception>({detail::MessagePart(parts)...});
}

namespace detail {

/// A shape that becomes text where a message is written. As text from the start, the five shapes that `gemm` could have
/// to tell of took it 4 us whenever it had not: a tenth of a 128^3 product.
struct ShapeInMessage {
    std::ptrdiff_t rows;
    std::ptrdiff_t cols;

    friend std::ostream& operator<<(std::ostream& out, const ShapeInMessage& shape) {
        return out << shape.rows << 'x' << shape.cols;
    }
    operator std::string() const { return concat(*this); }
};

} // namespace detail

/// "4x12": how every message writes a shape.
inline detail::ShapeInMessage shape(std::ptrdiff_t rows, std::ptrdiff_t cols) {
    return {rows, cols};
}

} // namespace reigen::inline REIGEN_INSTRUCTION_SET
