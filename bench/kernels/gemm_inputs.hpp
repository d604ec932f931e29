#pragma once

#include "peers/torch.hpp"
#include "support/bandwidth.hpp"
#include "support/error.hpp"
#include "support/type_name.hpp"

#include <reigen/core/random.hpp>
#include <reigen/core/strided.hpp>
#include <reigen/core/types.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <type_traits>
#include <vector>

/// Which factor of a product lies in memory as its transpose.
enum class Transposed { none, a, b };

/// C[m, n] = A[m, k] B[k, n].
struct GemmShape {
    reigen::Index m, n, k;
    Transposed transposed = Transposed::none;
    bool streams_weights = false; // B comes from memory each time

    /// "/512/1024/4096"
    std::string sizes() const { return '/' + std::to_string(m) + '/' + std::to_string(n) + '/' + std::to_string(k); }
    double flops() const { return 2.0 * double(m) * double(n) * double(k); }
};

/// The factors of one row, and some rows of their exact product.
template <class T>
class GemmInputs {
  public:
    explicit GemmInputs(const GemmShape& shape)
        : shape_(shape),
          a_(shape.transposed == Transposed::a ? random(shape.k, shape.m, 1) : random(shape.m, shape.k, 1)),
          b_(copies(shape),
             shape.transposed == Transposed::b ? random(shape.n, shape.k, 2) : random(shape.k, shape.n, 2)),
          exact_(exact_rows()) {}

    const GemmShape& shape() const { return shape_; }
    reigen::Strided<const T> a() const { return view(a_, Transposed::a); }

    /// Equal matrices, which are multiplied in turns: where weights are to come from memory, none of them is in a cache
    /// when it is read again.
    std::vector<reigen::Strided<const T>> b() const {
        std::vector<reigen::Strided<const T>> views;
        for (const reigen::RowMatrix<T>& copy : b_)
            views.push_back(view(copy, Transposed::b));
        return views;
    }

    double error_of(const reigen::RowMatrix<T>& c) const {
        bench::LargestError error;
        for (reigen::Index row = 0; row < exact_.rows(); ++row)
            for (reigen::Index j = 0; j < shape_.n; ++j)
                error.add(Exact(c(sampled(row), j)), exact_(row, j));
        return error.value();
    }

    peers::torch::Task torch_task(reigen::RowMatrix<T>& c) const {
        constexpr const char* transposed[] = {"none", "a", "b"};
        std::string words = std::string("gemm ") + bench::name_of<T>;
        for (const reigen::Index size : {shape_.m, shape_.n, shape_.k})
            words += ' ' + std::to_string(size);
        words += std::string(" ") + transposed[int(shape_.transposed)] + ' ' + std::to_string(b_.size());
        return {words, {array("a", a_), array("b", b_.front())}, {array("c", c)}};
    }

  private:
    using Exact = std::conditional_t<std::is_same_v<T, double>, long double, double>;
    static constexpr reigen::Index most_rows = 8;

    static reigen::RowMatrix<T> random(reigen::Index rows, reigen::Index cols, std::uint64_t stream) {
        const reigen::RandomStream numbers(1, stream);
        return reigen::RowMatrix<T>::NullaryExpr(
            rows, cols, [&](reigen::Index i, reigen::Index j) { return T(numbers.uniform(i * cols + j) - 0.5); });
    }

    static std::size_t copies(const GemmShape& shape) {
        const auto bytes = shape.n * shape.k * reigen::Index(sizeof(T));
        return std::size_t(shape.streams_weights ? 1 + 4 * bench::largest_cache() / bytes : 1);
    }

    reigen::Strided<const T> view(const reigen::RowMatrix<T>& x, Transposed which) const {
        const reigen::Strided<const T> lying = reigen::strided(x);
        return shape_.transposed == which ? lying.transpose() : lying;
    }

    static peers::torch::Array array(const char* name, const reigen::RowMatrix<T>& x) {
        return {name, const_cast<T*>(x.data()), std::size_t(x.size()) * sizeof(T)};
    }

    /// The rows of C whose exact values are known, spread evenly over all.
    reigen::Index sampled(reigen::Index row) const { return row * shape_.m / exact_.rows(); }

    reigen::RowMatrix<Exact> exact_rows() const {
        reigen::RowMatrix<Exact> rows = reigen::RowMatrix<Exact>::Zero(std::min(most_rows, shape_.m), shape_.n);
        const auto left = a(), right = b().front();
        for (reigen::Index row = 0; row < rows.rows(); ++row)
            for (reigen::Index l = 0; l < shape_.k; ++l)
                rows.row(row) +=
                    Exact(left(row * shape_.m / rows.rows(), l)) * right.map().row(l).template cast<Exact>();
        return rows;
    }

    GemmShape shape_;
    reigen::RowMatrix<T> a_;
    std::vector<reigen::RowMatrix<T>> b_;
    reigen::RowMatrix<Exact> exact_;
};
