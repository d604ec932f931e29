#include <support/shared_file.hpp>

#include <support/program.hpp>

#include <array>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>

namespace examples {

std::string made_on_first_rank(const reigen::Communicator& world, const std::function<std::string()>& make) {
    std::string text;
    std::array<std::int64_t, 2> failed_and_size = {0, 0};
    if (world.rank() == 0) {
        try {
            text = make();
        } catch (const UsageError& error) {
            text = error.what();
            failed_and_size[0] = 1;
        }
        failed_and_size[1] = std::int64_t(text.size());
    }
    world.broadcast(failed_and_size, 0);
    text.resize(std::size_t(failed_and_size[1]));
    world.broadcast(std::span(reinterpret_cast<std::uint8_t*>(text.data()), text.size()), 0);
    if (failed_and_size[0] != 0)
        throw UsageError(text);
    return text;
}

std::string read_file(const std::string& path) {
    if (std::error_code ignored; std::filesystem::is_directory(path, ignored))
        throw UsageError(path + " is a folder, not a file");
    errno = 0;
    std::ifstream file(path, std::ios::binary);
    std::ostringstream bytes;
    if (!file || !(bytes << file.rdbuf(), !file.bad()))
        throw UsageError("cannot read " + path + (errno != 0 ? std::string(": ") + std::strerror(errno) : ""));
    return bytes.str();
}

} // namespace examples
