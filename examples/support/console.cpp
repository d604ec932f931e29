#include <support/console.hpp>

#include <support/program.hpp>

#include <array>
#include <iostream>
#include <string>
#include <string_view>

#include <sys/ioctl.h>
#include <unistd.h>

namespace examples {
namespace {

/// Open MPI gives every rank a pseudo terminal, also when its own output goes to a file: ask for the launcher's.
bool launcher_writes_to_terminal() {
    const std::string path = "/proc/" + std::to_string(getppid()) + "/fd/1";
    std::array<char, 256> target{};
    const auto length = readlink(path.c_str(), target.data(), target.size());
    const std::string_view name(target.data(), length < 0 ? 0 : std::size_t(length));
    return name.starts_with("/dev/pts/") || name.starts_with("/dev/tty");
}

bool stdout_is_terminal() {
    return isatty(STDOUT_FILENO) != 0 && (!started_by_launcher() || launcher_writes_to_terminal());
}

} // namespace

std::ostream& console(const reigen::Communicator& world) {
    static thread_local std::ostream silence(nullptr);
    return world.rank() == 0 ? std::cout : silence;
}

int terminal_columns(const reigen::Communicator& world) {
    if (world.rank() != 0 || !stdout_is_terminal())
        return 0;
    winsize size{};
    const bool known = ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0;
    return known ? size.ws_col : 80;
}

} // namespace examples
