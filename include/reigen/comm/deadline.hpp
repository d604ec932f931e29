#pragma once

#include <reigen/core/error.hpp>

#include <optional>
#include <utility>

namespace reigen::inline REIGEN_INSTRUCTION_SET {

namespace detail {

inline thread_local std::optional<double> scoped_deadline;

inline double checked_deadline(const char* name, double seconds) {
    require(seconds >= 0, name, ": ", seconds, " seconds; want 0 (none) or more");
    return seconds;
}

} // namespace detail

/// While it lives, each wait of this rank gives up after so many seconds, whatever its communicator's deadline; 0 =
/// never. The innermost one holds.
///
///     {
///         const Deadline long_enough_for_a_file(1800);
///         world.barrier();
///     }
class [[nodiscard]] Deadline {
  public:
    explicit Deadline(double seconds)
        : before_(std::exchange(detail::scoped_deadline, detail::checked_deadline("Deadline", seconds))) {}
    ~Deadline() { detail::scoped_deadline = before_; }
    Deadline(const Deadline&) = delete;
    Deadline& operator=(const Deadline&) = delete;

  private:
    std::optional<double> before_;
};

} // namespace reigen::inline REIGEN_INSTRUCTION_SET
