#pragma once

#include <reigen/core/strided.hpp>

#include <cmath>
#include <random>
#include <vector>

// Matrices in every storage a product may meet, and the product as two loops say it.

enum class Storage { rows, columns, every_second_row, every_second_column, scattered };

inline constexpr Storage all_storages[] = {Storage::rows, Storage::columns, Storage::every_second_row,
                                           Storage::every_second_column, Storage::scattered};

/// A matrix with its own memory, of which it may use only a part.
template <class T>
struct Stored {
    using Index = reigen::Index;

    std::vector<T> memory;
    Index rows = 0;
    Index cols = 0;
    Storage storage = Storage::rows;

    Stored(Index rows_, Index cols_, Storage storage_, T fill = T(-77))
        : memory(std::size_t(6 * (rows_ + 1) * (cols_ + 1)), fill), rows(rows_), cols(cols_), storage(storage_) {}

    reigen::Strided<T> view() {
        switch (storage) {
        case Storage::rows:
            return {memory.data(), rows, cols, cols, 1};
        case Storage::columns:
            return {memory.data(), rows, cols, 1, rows};
        case Storage::every_second_row:
            return {memory.data(), rows, cols, 2 * cols + 1, 1};
        case Storage::every_second_column:
            return {memory.data(), rows, cols, 1, 2 * rows + 1};
        case Storage::scattered:
            return {memory.data(), rows, cols, 2 * (cols + 1), 2};
        }
        return {};
    }
};

class Numbers {
  public:
    explicit Numbers(unsigned seed) : generator_(seed) {}

    /// -4 ... 4
    template <class T>
    void small_integers(reigen::Strided<T> to) {
        fill(to, [&] { return T(float(generator_() % 9) - 4); });
    }

    /// Between -1 and 1.
    template <class T>
    void uniform(reigen::Strided<T> to) {
        std::uniform_real_distribution<double> distribution(-1, 1);
        fill(to, [&] { return T(distribution(generator_)); });
    }

    reigen::Index below(reigen::Index end) { return reigen::Index(generator_() % std::uint64_t(end)); }

  private:
    template <class T, class Next>
    void fill(reigen::Strided<T> to, Next next) {
        for (reigen::Index i = 0; i < to.rows; ++i)
            for (reigen::Index j = 0; j < to.cols; ++j)
                to(i, j) = next();
    }

    std::mt19937 generator_;
};

/// One element of A B in double, and the same sum of absolute values.
struct Element {
    double value = 0;
    double magnitude = 0;
};

template <class T>
Element product_element(reigen::Strided<T> a, reigen::Strided<T> b, reigen::Index i, reigen::Index j) {
    Element sum;
    for (reigen::Index k = 0; k < a.cols; ++k) {
        const double term = double(a(i, k)) * double(b(k, j));
        sum.value += term;
        sum.magnitude += std::abs(term);
    }
    return sum;
}
