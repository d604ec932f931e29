#include "communication/contenders.hpp"

#include <reigen/comm/mpi/call.hpp>

#include <algorithm>
#include <vector>

namespace communication {
namespace {

class Mpi final : public Contender {
  public:
    Mpi(const Case& which, int ranks)
        : call_(which.call),
          whole_(std::size_t(which.whole())),
          other_(std::size_t(which.whole())),
          count_(int(which.whole())),
          part_(count_ / ranks) {}

    void refresh() override {
        std::ranges::fill(whole_, 1.0F);
        std::ranges::fill(other_, 1.0F);
    }

    void run() override { reigen::detail::mpi_check(call(), "MPI's ", to_string(call_)); }

  private:
    int call() {
        switch (call_) {
        case Call::all_reduce:
            return MPI_Allreduce(MPI_IN_PLACE, whole_.data(), count_, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
        case Call::all_gather:
            return MPI_Allgather(other_.data(), part_, MPI_FLOAT, whole_.data(), part_, MPI_FLOAT, MPI_COMM_WORLD);
        case Call::reduce_scatter:
            return MPI_Reduce_scatter_block(whole_.data(), other_.data(), part_, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
        case Call::broadcast:
            return MPI_Bcast(whole_.data(), count_, MPI_FLOAT, 0, MPI_COMM_WORLD);
        case Call::all_to_all:
            return MPI_Alltoall(whole_.data(), part_, MPI_FLOAT, other_.data(), part_, MPI_FLOAT, MPI_COMM_WORLD);
        default:
            return MPI_Barrier(MPI_COMM_WORLD);
        }
    }

    Call call_;
    std::vector<float> whole_;
    std::vector<float> other_;
    int count_;
    int part_;
};

} // namespace

std::unique_ptr<Contender> make_mpi(const Case& which, int ranks) {
    return std::make_unique<Mpi>(which, ranks);
}

} // namespace communication
