#include <train_gpt/batch.hpp>

#include <reigen/core/random.hpp>

#include <algorithm>

namespace train_gpt {
namespace {

constexpr std::uint64_t batches_stream = 0xba7c4;

std::int32_t token(std::string_view text, Index place) {
    return static_cast<unsigned char>(text[std::size_t(place)]);
}

} // namespace

Starts random_starts(std::string_view text, Index sequences, Index length, std::uint64_t seed, Index step,
                     Index micro_batch) {
    const reigen::RandomStream random(seed, batches_stream, step, micro_batch);
    const auto places = double(Index(text.size()) - length);
    Starts starts;
    for (Index sequence = 0; sequence < sequences; ++sequence)
        starts.push_back(Index(places * random.uniform(sequence)));
    return starts;
}

Starts even_starts(std::string_view text, Index most, Index length) {
    const Index last = Index(text.size()) - 1 - length;
    const Index count = std::clamp<Index>(last / length + 1, 1, most);
    const Index step = count > 1 ? last / (count - 1) : 0;
    Starts starts;
    for (Index window = 0; window < count; ++window)
        starts.push_back(window * step);
    return starts;
}

std::vector<std::int32_t> cut(std::string_view text, const Starts& starts, Index length, const reigen::Runs& rows,
                              Index ahead) {
    std::vector<std::int32_t> tokens;
    for (const reigen::Run& run : rows.pieces())
        for (Index i = 0; i < run.count; ++i)
            tokens.push_back(token(text, starts[std::size_t(run[i] / length)] + run[i] % length + ahead));
    return tokens;
}

} // namespace train_gpt
