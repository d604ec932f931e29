#pragma once

#include <reigen/comm/backend.hpp>
#include <reigen/comm/mpi_call.hpp>

#include <algorithm>
#include <string>
#include <vector>

namespace reigen::inline REIGEN_INSTRUCTION_SET::detail {

/// A message over MPI, cut into blocks because MPI counts in int; both sides cut alike. MPI sees bytes only, so every
/// element type travels, also those MPI has no name for.
class MpiMessage final : public Message {
  public:
    MpiMessage(MPI_Comm comm, Index block_bytes, const Operation& operation) : operation_(operation) {
        const bool send = operation.call == Call::send;
        const Index bytes = (send ? operation.in_size : operation.out_size) * size_of(operation.type);
        for (Index first = 0; first == 0 || first < bytes; first += block_bytes) {
            sizes_.push_back(int(std::min(block_bytes, bytes - first)));
            requests_.push_back(MPI_REQUEST_NULL);
            const int code = send ? MPI_Isend(operation.in + first, sizes_.back(), MPI_BYTE, operation.peer,
                                              operation.tag, comm, &requests_.back())
                                  : MPI_Irecv(operation.out + first, sizes_.back(), MPI_BYTE, operation.peer,
                                              operation.tag, comm, &requests_.back());
            if (code != MPI_SUCCESS)
                throw_error(code);
        }
        statuses_.resize(requests_.size());
    }

    ~MpiMessage() override { revoke(); }

    bool advance() override {
        int complete = 0;
        const int code = MPI_Testall(int(requests_.size()), requests_.data(), &complete, statuses_.data());
        if (code == MPI_ERR_IN_STATUS)
            throw_first_error();
        if (code != MPI_SUCCESS)
            throw_error(code);
        if (complete != 0 && operation_.call == Call::receive)
            check_sizes();
        return complete != 0;
    }

    /// A receive that nothing has come for can be cancelled; a send cannot be relied on to.
    bool revoke() noexcept override {
        if (!mpi_is_alive())
            return true;
        bool all = true;
        for (MPI_Request& request : requests_) {
            if (request == MPI_REQUEST_NULL)
                continue;
            int complete = 0;
            if (operation_.call == Call::receive)
                MPI_Cancel(&request);
            MPI_Test(&request, &complete, MPI_STATUS_IGNORE);
            all = all && complete != 0;
        }
        return all;
    }

    std::string waits_for() const override { return concat("rank ", operation_.peer, " in ", to_string(operation_)); }

  private:
    std::string text() const {
        return concat(to_string(operation_), operation_.call == Call::send ? " to rank " : " from rank ",
                      operation_.peer);
    }

    void throw_first_error() const {
        for (std::size_t block = 0; block < statuses_.size(); ++block) {
            const int code = statuses_[block].MPI_ERROR;
            if (code != MPI_SUCCESS && code != MPI_ERR_PENDING)
                throw_error(code);
        }
    }

    [[noreturn]] void throw_error(int code) const {
        int kind = MPI_SUCCESS;
        MPI_Error_class(code, &kind);
        if (kind == MPI_ERR_TRUNCATE)
            throw ShapeError(concat(text(), ": more is sent than is expected"));
        throw CommunicationError(concat(text(), ": ", mpi_error_text(code)));
    }

    void check_sizes() {
        for (std::size_t block = 0; block < sizes_.size(); ++block) {
            int received = 0;
            MPI_Get_count(&statuses_[block], MPI_BYTE, &received);
            if (received != sizes_[block])
                throw ShapeError(concat(text(), ": ", received, " bytes are sent, ", sizes_[block], " are expected"));
        }
    }

    Operation operation_;
    std::vector<int> sizes_; // bytes of each block
    std::vector<MPI_Request> requests_;
    std::vector<MPI_Status> statuses_;
};

} // namespace reigen::inline REIGEN_INSTRUCTION_SET::detail
