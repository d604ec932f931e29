#pragma once

#include <reigen/comm/mpi/call.hpp>

#include <exception>

namespace reigen::inline REIGEN_INSTRUCTION_SET::detail {

/// A communicator of MPI's that belongs to us; its errors come back as codes.
///
/// It is freed with this object where its ranks seem to have done the same. Where one has left its messages untaken it
/// is kept until MPI ends: freed then, MPICH 4.1 and newer end the job, in words of their own.
class MpiComm {
  public:
    explicit MpiComm(MPI_Comm comm) : comm_(comm) {
        mpi_check(MPI_Comm_set_errhandler(comm_, MPI_ERRORS_RETURN), "MPI_Comm_set_errhandler");
    }

    MpiComm(const MpiComm&) = delete;
    MpiComm& operator=(const MpiComm&) = delete;

    ~MpiComm() {
        if (mpi_is_alive() && in_order_ && std::uncaught_exceptions() == 0 && !anything_has_come())
            MPI_Comm_free(&comm_); // only marks it, in every implementation known to us: nobody is waited for
    }

    MPI_Comm get() const { return comm_; }

    /// A message was begun, and is given up.
    void lose_order() noexcept { in_order_ = false; }

  private:
    /// Whether there is a message that nobody has taken. MPI may see only a few more at each look.
    bool anything_has_come() const noexcept {
        constexpr int looks = 64;
        int here = 0;
        for (int look = 0; look < looks && here == 0; ++look)
            if (MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, comm_, &here, MPI_STATUS_IGNORE) != MPI_SUCCESS)
                return true;
        return here != 0;
    }

    MPI_Comm comm_;
    bool in_order_ = true;
};

} // namespace reigen::inline REIGEN_INSTRUCTION_SET::detail
