#include "overlap/work.hpp"

#include <reigen/layout/redistribute.hpp>
#include <reigen/matmul/matmul.hpp>
#include <reigen/matmul/same_bits.hpp>

#include <cmath>

namespace overlap {
namespace {

using namespace reigen;

/// A row-partitioned product and its sum: in the bits that any number of ranks gives, or plain.
class SummedProduct {
  public:
    SummedProduct(const Mesh& mesh, const MlpSizes& sizes)
        : a_(mesh, sizes.tokens, k(mesh, sizes)), b_(mesh, k(mesh, sizes), sizes.width) {
        const auto fill = [](auto x) {
            for (Index i = 0; i < x.size(); ++i)
                x.data()[i] = std::sin(float(i));
        };
        fill(a_.local());
        fill(b_.local());
    }

    void same_bits() { result_ = matmul_same_bits(a_, b_); }
    void plain() { result_ = sum(matmul(a_, b_)); }
    void alone() { product_ = matmul(a_, b_); }

  private:
    static Partition k(const Mesh& mesh, const MlpSizes& sizes) {
        return Partition::balanced(sizes.hidden, mesh.size(tp), 256);
    }

    Sharded<float, split_cols(tp)> a_;
    Sharded<float, split_rows(tp)> b_;
    Sharded<float, replicated> result_;
    Sharded<float, partial(tp)> product_;
};

class SameBitsWork final : public Work {
  public:
    SameBitsWork(const Mesh& mesh, const MlpSizes& sizes) : product_(mesh, sizes), whole_(Mesh(), sizes) {}

    void overlapped() override { product_.same_bits(); }
    void plain() override { product_.plain(); }
    void computing() override { product_.alone(); }
    void whole() override { whole_.plain(); }

  private:
    SummedProduct product_, whole_;
};

} // namespace

std::vector<Case> same_bits_cases(const MlpSizes& sizes, int ranks) {
    return {case_over<SameBitsWork>(
        tp, concat("same_bits/tp:", ranks, "/tokens:", sizes.tokens, "/k:", sizes.hidden, "/n:", sizes.width), sizes)};
}

} // namespace overlap
