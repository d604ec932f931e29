#pragma once

#include <reigen/core/error.hpp>
#include <reigen/core/random.hpp>
#include <reigen/core/runs.hpp>
#include <reigen/core/strided.hpp>

#include <algorithm>
#include <array>
#include <cstdint>

namespace reigen::inline REIGEN_INSTRUCTION_SET {

/// Which elements dropout zeroes: a function of the stream and the element's global index alone.
class DropoutPattern {
  public:
    /// Every element is zeroed with `probability`, in [0, 1); `cols` is the global number of columns.
    DropoutPattern(double probability, Index cols, const RandomStream& stream)
        : threshold_(std::uint64_t(checked(probability) * 0x1p32)),
          factor_(1 / (1 - probability)),
          groups_((cols + 3) / 4),
          stream_(stream) {}

    bool drops_nothing() const { return threshold_ == 0; }
    double factor() const { return factor_; }

    /// Whether elements (row, 4 group), ..., (row, 4 group + 3) stay: four from one number of the generator.
    std::array<bool, 4> kept(Index row, Index group) const {
        const auto words = stream_.words(row * groups_ + group);
        return {words[0] >= threshold_, words[1] >= threshold_, words[2] >= threshold_, words[3] >= threshold_};
    }

  private:
    static double checked(double probability) {
        require(probability >= 0 && probability < 1, "dropout: probability ", probability, ", want it in [0, 1)");
        return probability;
    }

    std::uint64_t threshold_;
    double factor_;
    Index groups_;
    RandomStream stream_;
};

/// Zeroes elements of x in place and scales the others by 1 / (1 - probability): forward, and its own adjoint.
///
/// Shapes      x: whole rows, those that `rows` names
template <class T>
void dropout(Strided<T> x, const Runs& rows, const DropoutPattern& pattern) {
    require<ShapeError>(x.rows == rows.size(), "dropout: ", x.rows, " rows, but runs of ", rows.size());
    if (pattern.drops_nothing())
        return;
    const T factor = T(pattern.factor());
    Index local = 0;
    for (const Run& run : rows.pieces())
        for (Index r = 0; r < run.count; ++r, ++local)
            for (Index first = 0; first < x.cols; first += 4) {
                const auto kept = pattern.kept(run[r], first / 4);
                for (Index j = first; j < std::min(first + 4, x.cols); ++j)
                    x(local, j) = kept[std::size_t(j - first)] ? x(local, j) * factor : T(0);
            }
}

} // namespace reigen::inline REIGEN_INSTRUCTION_SET
