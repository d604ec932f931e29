#include "shard_sizes/work.hpp"

#include <reigen/layout/redistribute.hpp>
#include <reigen/matmul/matmul.hpp>
#include <reigen/nn/mlp.hpp>

#include <cmath>

namespace shard_sizes {
namespace {

using namespace reigen;

float number(Index i, Index j) {
    return std::sin(float(i) + 0.7F * float(j)) / 16;
}

/// y = x [W1 | W2 | ...]: no message.
class ColumnProduct final : public Work {
  public:
    ColumnProduct(const Case& c, const Mesh& mesh)
        : x_(Sharded<float, replicated>::from_global(mesh, c.tokens, c.width, number)),
          w_(Sharded<float, split_cols(tp)>::from_global(mesh, c.width, c.wide(), number)) {}

    void run() override { matmul(x_, w_); }

  private:
    Sharded<float, replicated> x_;
    Sharded<float, split_cols(tp)> w_;
};

/// y = h1 W1 + h2 W2 + ...: an all-reduce.
class RowProduct final : public Work {
  public:
    RowProduct(const Case& c, const Mesh& mesh)
        : h_(Sharded<float, split_cols(tp)>::from_global(mesh, c.tokens, c.wide(), number)),
          w_(Sharded<float, split_rows(tp)>::from_global(mesh, c.wide(), c.width, number)) {}

    void run() override { sum(matmul(h_, w_)); }

  private:
    Sharded<float, split_cols(tp)> h_;
    Sharded<float, split_rows(tp)> w_;
};

/// Two linear layers with GELU between them, forward and backward: two all-reduces.
class MlpStep final : public Work {
  public:
    MlpStep(const Case& c, const Mesh& mesh)
        : x_(Tokens::from_global(mesh, c.tokens, c.width, number)),
          mlp_(mesh, "mlp", c.width, c.wide(), MlpKind::gelu, {.deviation = 0.02}, {.deviation = 0.02}) {}

    void run() override {
        auto [y, saved] = mlp_.forward(x_.clone());
        mlp_.backward(std::move(saved), y);
    }

  private:
    using Tokens = Sharded<float, residual_on_every_rank>;
    Tokens x_;
    Mlp<float, residual_on_every_rank> mlp_;
};

} // namespace

double Case::flops() const {
    const double product = 2.0 * double(tokens) * double(width) * double(wide());
    return kind == Kind::mlp ? 6 * product : product;
}

std::string Case::name() const {
    const char* const names[] = {"column", "row", "mlp"};
    return concat(names[int(kind)], "/tokens:", tokens, "/width:", width, "/tp:", ranks);
}

std::unique_ptr<Work> make_work(const Case& which, const Mesh& mesh) {
    switch (which.kind) {
    case Kind::column:
        return std::make_unique<ColumnProduct>(which, mesh);
    case Kind::row:
        return std::make_unique<RowProduct>(which, mesh);
    case Kind::mlp:
        break;
    }
    return std::make_unique<MlpStep>(which, mesh);
}

} // namespace shard_sizes
