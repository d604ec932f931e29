#pragma once

#include <reigen/core/types.hpp>

#include <string>
#include <string_view>

namespace train_gpt {

using reigen::Index;

/// The bytes of a file, or of the library's own headers one after the other where the path is empty.
///
/// Throws  UsageError where nothing can be read
std::string load_text(const std::string& path);

/// Entropy of the byte frequencies, in nats per byte: the loss of the best guesser that ignores the context.
double byte_entropy(std::string_view bytes);

/// A text, of which the last tenth is held out: never trained on.
class Corpus {
  public:
    /// Throws UsageError where a part is shorter than one window: `context` bytes and the one that follows.
    Corpus(std::string text, Index context);

    std::string_view training() const { return std::string_view(text_).substr(0, std::size_t(training_size_)); }
    std::string_view held_out() const { return std::string_view(text_).substr(std::size_t(training_size_)); }

  private:
    std::string text_;
    Index training_size_;
};

} // namespace train_gpt
