#pragma once

#include <reigen/core/instruction_set.hpp>

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

/// The parts written one after the other, as `std::ostream` prints them.
template <class... Parts>
std::string concat(const Parts&... parts) {
    std::ostringstream out;
    (out << ... << parts);
    return out.str();
}

/// Throws `Exception` with the concatenated parts unless the condition holds; costs one branch when it does.
template <class Exception = ArgumentError, class... Parts>
void require(bool condition, const Parts&... parts) {
    if (!condition) [[unlikely]]
        throw Exception(concat(parts...));
}

/// "4x12": how every message writes a shape.
template <class Rows, class Cols>
std::string shape(Rows rows, Cols cols) {
    return concat(rows, 'x', cols);
}

} // namespace reigen::inline REIGEN_INSTRUCTION_SET
