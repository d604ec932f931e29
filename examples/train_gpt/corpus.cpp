#include <train_gpt/corpus.hpp>

#include <support/first_rank.hpp>
#include <support/program.hpp>

#include <reigen/core/error.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <vector>

namespace train_gpt {
namespace {

namespace fs = std::filesystem;
using examples::UsageError;
using reigen::concat;

constexpr const char* headers_folder = TRAIN_GPT_HEADERS;

/// Paths of the library's headers, in an order that no file system decides.
std::vector<std::string> header_paths() {
    std::vector<std::string> paths;
    std::error_code failure;
    for (fs::recursive_directory_iterator entry(headers_folder, failure), end; !failure && entry != end;
         entry.increment(failure))
        if (entry->path().extension() == ".hpp")
            paths.push_back(entry->path().generic_string());
    if (paths.empty())
        throw UsageError(concat("no headers in ", headers_folder, " to train on; name a file with --text"));
    std::sort(paths.begin(), paths.end());
    return paths;
}

} // namespace

std::string load_text(const std::string& path) {
    if (path.empty()) {
        std::string text;
        for (const std::string& header : header_paths())
            text += examples::read_file(header);
        return text;
    }
    std::string text = examples::read_file(path);
    if (text.empty())
        throw UsageError(path + " is empty");
    return text;
}

double byte_entropy(std::string_view bytes) {
    std::array<double, 256> counts{};
    for (const char byte : bytes)
        ++counts[static_cast<unsigned char>(byte)];
    double entropy = 0;
    for (const double count : counts)
        if (count > 0)
            entropy -= count / double(bytes.size()) * std::log(count / double(bytes.size()));
    return entropy;
}

Corpus::Corpus(std::string text, Index context) : text_(std::move(text)) {
    const Index size = Index(text_.size());
    const Index window = context + 1;
    training_size_ = size - std::max(size / 10, window);
    if (training_size_ < window)
        throw UsageError(concat("the text has ", size, " bytes; with --context ", context, " it takes ", 2 * window,
                                ": one window to train on and one to hold out"));
}

} // namespace train_gpt
