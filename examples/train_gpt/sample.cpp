#include <train_gpt/sample.hpp>

#include <reigen/core/random.hpp>

#include <algorithm>
#include <cmath>

namespace train_gpt {
namespace {

constexpr std::uint64_t sample_stream = 0x5a3b1e;

std::string_view last_bytes(std::string_view text, Index count) {
    return text.substr(text.size() - std::min(text.size(), std::size_t(count)));
}

} // namespace

Index pick(std::span<const double> logits, double temperature, double uniform) {
    const auto largest = std::max_element(logits.begin(), logits.end());
    if (temperature == 0)
        return largest - logits.begin();
    std::vector<double> sums;
    double sum = 0;
    for (const double logit : logits)
        sums.push_back(sum += std::exp((logit - *largest) / temperature));
    return std::upper_bound(sums.begin(), sums.end() - 1, uniform * sum) - sums.begin();
}

std::string continue_text(Training& training, std::string_view prompt, const Options& options) {
    const reigen::RandomStream random(options.seed, sample_stream);
    std::string text(prompt);
    for (Index i = 0; i < options.sample; ++i) {
        const auto logits = training.next_logits(last_bytes(text, options.context));
        text += static_cast<char>(pick(logits, options.temperature, random.uniform(i)));
    }
    return text.substr(prompt.size());
}

std::string printable(std::string text) {
    std::replace_if(
        text.begin(), text.end(),
        [](unsigned char byte) { return (byte < 32 && byte != '\n' && byte != '\t') || byte == 127; }, '?');
    return text;
}

} // namespace train_gpt
