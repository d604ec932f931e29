#include "peers/torch.hpp"

#include "peers/worker.hpp"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <stdexcept>

namespace peers::torch {
namespace {

/// A folder that is gone with the program.
class TemporaryFolder {
  public:
    TemporaryFolder() {
        std::string pattern = (std::filesystem::temp_directory_path() / "reigen_bench_XXXXXX").string();
        if (mkdtemp(pattern.data()) == nullptr)
            throw std::runtime_error("no temporary folder " + pattern);
        path_ = pattern;
    }
    TemporaryFolder(const TemporaryFolder&) = delete;
    TemporaryFolder& operator=(const TemporaryFolder&) = delete;
    ~TemporaryFolder() {
        std::error_code ignored;
        std::filesystem::remove_all(path_, ignored);
    }

    std::filesystem::path operator/(const std::string& name) const { return path_ / name; }

  private:
    std::filesystem::path path_;
};

struct Session {
    TemporaryFolder folder;
    Worker worker;

    explicit Session(const std::string& python) : worker({python, REIGEN_BENCH_TORCH_WORKER, (folder / "").string()}) {}

    void write(const Array& array) const {
        std::ofstream file(folder / array.name, std::ios::binary);
        file.write(static_cast<const char*>(array.data), std::streamsize(array.bytes));
        if (!file.flush())
            throw std::runtime_error("cannot write " + (folder / array.name).string());
    }

    void read(const Array& array) const {
        std::ifstream file(folder / array.name, std::ios::binary);
        file.read(static_cast<char*>(array.data), std::streamsize(array.bytes));
        if (!file || file.peek() != std::ifstream::traits_type::eof())
            throw std::runtime_error("PyTorch's " + array.name + " has another size than ours");
    }
};

std::optional<Session>& session() {
    static std::optional<Session> only;
    return only;
}

} // namespace

void start(const std::string& python) {
    session().emplace(python);
}

std::string version() {
    return session() ? session()->worker.ask("version") : "";
}

std::optional<bench::Contender> contender(const Task& task, const std::function<double()>& error) {
    if (!session())
        return std::nullopt;
    Session& torch = *session();
    for (const Array& input : task.inputs)
        torch.write(input);
    torch.worker.ask("prepare " + task.words);
    const auto seconds = [&torch](reigen::Index runs) {
        return std::stod(torch.worker.ask_on_this_core("run " + std::to_string(runs)));
    };
    if (!error)
        return bench::Contender{"torch", seconds};
    const auto written_error = [&torch, outputs = task.outputs, error] {
        torch.worker.ask("write");
        for (const Array& output : outputs)
            torch.read(output);
        return error();
    };
    return bench::Contender{"torch", seconds, written_error};
}

} // namespace peers::torch
