#include <support/first_rank.hpp>

#include <support/program.hpp>

#include <array>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <span>
#include <sstream>

namespace examples {
namespace {

/// What went wrong with the last file, in the system's words.
std::string reason() {
    return errno != 0 ? std::string(": ") + std::strerror(errno) : "";
}

/// Gives every rank the elements that rank 0 has.
template <class Element, class Container>
void share(const reigen::Communicator& world, Container& elements) {
    std::array<std::int64_t, 1> size = {std::int64_t(elements.size())};
    world.broadcast(size, 0);
    elements.resize(std::size_t(size[0]));
    world.broadcast(std::span(reinterpret_cast<Element*>(elements.data()), elements.size()), 0);
}

/// While it lives, waits on the communicator have no end.
class Patience {
  public:
    explicit Patience(const reigen::Communicator& world) : world_(world), before_(world.deadline()) {
        world_.set_deadline(0);
    }
    ~Patience() { world_.set_deadline(before_); }
    Patience(const Patience&) = delete;
    Patience& operator=(const Patience&) = delete;

  private:
    reigen::Communicator world_;
    double before_;
};

} // namespace

std::string text_of_first_rank(const reigen::Communicator& world, const std::function<std::string()>& make) {
    std::string text;
    std::string error;
    if (world.rank() == 0) {
        try {
            text = make();
        } catch (const UsageError& usage) {
            error = usage.what();
        }
    }
    share<std::uint8_t>(world, error);
    if (!error.empty())
        throw UsageError(error);
    share<std::uint8_t>(world, text);
    return text;
}

std::vector<double> numbers_of_first_rank(const reigen::Communicator& world,
                                          const std::function<std::vector<double>()>& make) {
    std::vector<double> numbers;
    if (world.rank() == 0)
        numbers = make();
    const Patience patience(world);
    share<double>(world, numbers);
    return numbers;
}

std::ofstream file_of_first_rank(const reigen::Communicator& world, const std::string& path) {
    std::ofstream file;
    text_of_first_rank(world, [&] {
        errno = 0;
        if (!path.empty())
            file.open(path);
        if (!path.empty() && !file)
            throw UsageError("cannot write " + path + reason());
        return std::string();
    });
    return file;
}

std::string read_file(const std::string& path) {
    std::error_code ignored;
    const auto status = std::filesystem::status(path, ignored);
    if (std::filesystem::is_directory(status))
        throw UsageError(path + " is a folder, not a file");
    if (std::filesystem::exists(status) && !std::filesystem::is_regular_file(status))
        throw UsageError(path + " is a device or a pipe, not a file"); // it may have no end, or no beginning
    errno = 0;
    try {
        std::ifstream file(path, std::ios::binary);
        std::string bytes(std::istreambuf_iterator<char>(file), {});
        if (file)
            return bytes;
    } catch (const std::ios_base::failure&) { // of a file that can be opened and not be read
        throw UsageError("cannot read " + path + reason());
    }
    throw UsageError("cannot read " + path + reason());
}

} // namespace examples
