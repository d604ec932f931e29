#include <reigen/kernel/norm.hpp>

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

namespace norm_test {

using reigen::Index;
using reigen::RowMatrix;
using reigen::Strided;

double wave(Index i, Index j) {
    return std::sin(1.3 * double(i) + 0.7 * double(j)) + 0.1 * double(j % 5);
}

/// Rows of `cols` elements inside wider rows, so that strides matter; the rest is NaN.
template <class T>
struct InWiderRows {
    RowMatrix<T> all;
    Index cols;

    InWiderRows(Index rows, Index cols_)
        : all(RowMatrix<T>::Constant(rows, cols_ + 3, std::numeric_limits<T>::quiet_NaN())), cols(cols_) {}

    Strided<T> view() { return {all.data() + 1, all.rows(), cols, all.cols(), 1}; }
    T& operator()(Index i, Index j) { return all(i, j + 1); }
};

template <class T>
struct Case {
    Index rows = 3, cols;
    bool centred;
    InWiderRows<T> x{rows, cols}, y{rows, cols}, dy{rows, cols}, dx{rows, cols};
    std::vector<T> scale, shift, mean, inverse, dscale, dshift;

    Case(Index cols_, bool centred_) : cols(cols_), centred(centred_), mean(3), inverse(3) {
        for (Index j = 0; j < cols; ++j) {
            scale.push_back(T(1 + 0.1 * wave(7, j)));
            shift.push_back(T(wave(9, j)));
            dscale.push_back(T(j));
            dshift.push_back(T(-j));
            for (Index i = 0; i < rows; ++i) {
                x(i, j) = T(wave(i, j) + 3);
                dy(i, j) = T(wave(i + 20, 2 * j));
                dx(i, j) = T(i - j);
            }
        }
    }

    reigen::NormParameters<T> parameters() const {
        return {scale.data(), centred ? shift.data() : nullptr, T(1e-3), centred};
    }
    void forward() { reigen::normalise<T>(x.view(), parameters(), y.view(), {mean.data(), inverse.data()}); }
    void backward() {
        reigen::normalise_backward<T>(x.view(), parameters(), {mean.data(), inverse.data()}, dy.view(), dx.view(),
                                      dscale.data(), centred ? dshift.data() : nullptr);
    }

    /// What y(i, j) should be, in double, with x(i, at) moved by `step`.
    double want(Index i, Index j, Index at = 0, double step = 0) {
        const auto value = [&](Index k) { return double(x(i, k)) + (k == at ? step : 0); };
        double m = 0, v = 0;
        for (Index k = 0; k < cols && centred; ++k)
            m += value(k) / double(cols);
        for (Index k = 0; k < cols; ++k)
            v += (value(k) - m) * (value(k) - m) / double(cols);
        const double normal = (value(j) - m) / std::sqrt(v + double(T(1e-3)));
        return normal * double(scale[std::size_t(j)]) + (centred ? double(shift[std::size_t(j)]) : 0);
    }

    /// d/dx(i, at) of sum_j dy(i, j) y(i, j), by central differences.
    double want_dx(Index i, Index at) {
        const double step = 1e-5;
        double sum = 0;
        for (Index j = 0; j < cols; ++j)
            sum += double(dy(i, j)) * (want(i, j, at, step) - want(i, j, at, -step)) / (2 * step);
        return sum;
    }
};

template <class T>
class norm : public testing::Test {
  protected:
    static constexpr double tolerance = 40 * double(std::numeric_limits<T>::epsilon());

    template <class Body>
    void each_case(Body body) {
        for (const bool centred : {true, false})
            for (const Index cols : {1, 3, 16, 37, 130}) {
                Case<T> c(cols, centred);
                c.forward();
                body(c);
            }
    }
};

using Scalars = testing::Types<float, double>;
TYPED_TEST_SUITE(norm, Scalars);

TYPED_TEST(norm, rows_are_normalised_scaled_and_shifted) {
    this->each_case([](auto& c) {
        for (Index i = 0; i < c.rows; ++i)
            for (Index j = 0; j < c.cols; ++j)
                EXPECT_NEAR(c.y(i, j), c.want(i, j), 4 * TestFixture::tolerance) << c.cols << ' ' << c.centred;
    });
}

TYPED_TEST(norm, the_gradient_of_the_input_is_added_and_is_the_difference_quotient) {
    this->each_case([](auto& c) {
        c.backward();
        for (Index i = 0; i < c.rows; ++i)
            for (Index j = 0; j < c.cols; ++j)
                EXPECT_NEAR(c.dx(i, j), double(i - j) + c.want_dx(i, j),
                            1e-7 + 4 * double(c.cols) * TestFixture::tolerance);
    });
}

TYPED_TEST(norm, gradients_of_scale_and_shift_are_added_over_the_rows) {
    this->each_case([](auto& c) {
        c.backward();
        for (Index j = 0; j < c.cols; ++j) {
            double dscale = double(j), dshift = -double(j);
            for (Index i = 0; i < c.rows; ++i) {
                const double shift = c.centred ? double(c.shift[std::size_t(j)]) : 0;
                dscale += double(c.dy(i, j)) * (c.want(i, j) - shift) / double(c.scale[std::size_t(j)]);
                dshift += double(c.dy(i, j));
            }
            const double allowed = TestFixture::tolerance * double(10 + j);
            EXPECT_NEAR(c.dscale[std::size_t(j)], dscale, allowed);
            EXPECT_NEAR(c.dshift[std::size_t(j)], c.centred ? dshift : -double(j), allowed);
        }
    });
}

TYPED_TEST(norm, a_row_far_from_zero_keeps_its_variance) {
    using T = TypeParam;
    std::vector<T> x(64), y(64), scale(64, T(1)), shift(64, T(0));
    for (std::size_t j = 0; j < 64; ++j)
        x[j] = T(4096 + (j % 2 == 0 ? 1 : -1));
    T mean, inverse;
    const auto view = [](std::vector<T>& v) { return Strided<T>{v.data(), 1, 64, 64, 1}; };
    reigen::normalise<T>(view(x), {scale.data(), shift.data(), T(0), true}, view(y), {&mean, &inverse});
    EXPECT_EQ(inverse, T(1));
    EXPECT_EQ(y[0], T(1));
    EXPECT_EQ(y[1], T(-1));
}

TYPED_TEST(norm, a_column_stride_is_refused) {
    using T = TypeParam;
    std::vector<T> x(8), scale(4);
    const Strided<T> columns{x.data(), 2, 4, 1, 2};
    EXPECT_THROW(reigen::normalise<T>(columns, {scale.data(), nullptr, T(0), false}, columns, {}), reigen::ShapeError);
}

} // namespace norm_test
