#include <reigen/kernel/gemm.hpp>

#include "kernel/gemm_cases.hpp"

#include <gtest/gtest.h>

#include <sys/mman.h>
#include <unistd.h>

namespace gemm_bounds_test {

using reigen::bfloat16;
using reigen::gemm;
using reigen::Index;
using reigen::Strided;

/// A matrix that ends where readable memory ends: one element further is a segmentation fault.
template <class T>
class Guarded {
  public:
    Guarded(Index rows, Index cols, Storage storage) : rows_(rows), cols_(cols), by_rows_(storage == Storage::rows) {
        const std::size_t page = std::size_t(sysconf(_SC_PAGESIZE));
        const std::size_t bytes = std::size_t(rows * cols) * sizeof(T);
        used_ = (bytes + page - 1) / page * page;
        mapped_ = used_ + page;
        start_ = static_cast<char*>(mmap(nullptr, mapped_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
        mprotect(start_ + used_, page, PROT_NONE);
        data_ = reinterpret_cast<T*>(start_ + used_ - bytes);
    }
    ~Guarded() { munmap(start_, mapped_); }
    Guarded(const Guarded&) = delete;
    Guarded& operator=(const Guarded&) = delete;

    Strided<T> view() {
        return by_rows_ ? Strided<T>{data_, rows_, cols_, cols_, 1} : Strided<T>{data_, rows_, cols_, 1, rows_};
    }

  private:
    Index rows_, cols_;
    bool by_rows_;
    std::size_t used_ = 0, mapped_ = 0;
    char* start_ = nullptr;
    T* data_ = nullptr;
};

template <class T>
class bounds_of_gemm : public testing::Test {};
using Scalars = testing::Types<float, double, bfloat16>;
TYPED_TEST_SUITE(bounds_of_gemm, Scalars);

TYPED_TEST(bounds_of_gemm, nothing_behind_the_matrices_is_touched) {
    Numbers numbers{11};
    for (Storage of_a : {Storage::rows, Storage::columns})
        for (Storage of_b : {Storage::rows, Storage::columns})
            for (Storage of_c : {Storage::rows, Storage::columns})
                for (Index m : {1, 7, 21})
                    for (Index n : {1, 17, 48}) {
                        Guarded<TypeParam> a(m, 19, of_a), b(19, n, of_b), c(m, n, of_c);
                        numbers.small_integers(a.view());
                        numbers.small_integers(b.view());
                        gemm(1, a.view(), b.view(), 0, c.view());
                        const double want = product_element(a.view(), b.view(), m - 1, n - 1).value;
                        EXPECT_EQ(double(c.view()(m - 1, n - 1)), double(TypeParam(float(want))));
                    }
}

} // namespace gemm_bounds_test
