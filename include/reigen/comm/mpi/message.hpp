#pragma once

#include <reigen/comm/backend/backend.hpp>
#include <reigen/comm/backend/lines.hpp>
#include <reigen/comm/mpi/comm.hpp>

#include <algorithm>
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

namespace reigen::inline REIGEN_INSTRUCTION_SET::detail {

/// A message over MPI, cut into blocks because MPI counts in int; both sides cut alike. MPI sees bytes only, so every
/// element type travels, also those MPI has no name for.
class MpiMessage : public Message {
  public:
    MpiMessage(MpiComm& comm, const Operation& operation) : comm_(comm), operation_(operation) {}

    ~MpiMessage() override {
        if (!complete_)
            comm_.lose_order();
    }

    bool advance() final {
        complete_ = complete_ || advance_blocks();
        return complete_;
    }

    std::string waits_for() const override { return concat("rank ", operation_.peer, " in ", to_string(operation_)); }

  protected:
    /// Moves its blocks; true once they are complete.
    virtual bool advance_blocks() = 0;

    const Operation& operation() const { return operation_; }
    MPI_Comm comm() const { return comm_.get(); }

    /// What MPI returned; an error is thrown as what it means for this message.
    void check(int code) const {
        if (code != MPI_SUCCESS) [[unlikely]]
            throw CommunicationError(concat(text(), ": ", mpi_error_text(code)));
    }

    std::string text() const {
        return concat(to_string(operation_), operation_.call == Call::send ? " to rank " : " from rank ",
                      operation_.peer);
    }

    /// The blocks that MPI has now, and whether it is done with them.
    bool requests_complete() {
        int complete = 0;
        statuses_.resize(requests_.size());
        const int code = MPI_Testall(int(requests_.size()), requests_.data(), &complete, statuses_.data());
        if (code == MPI_ERR_IN_STATUS)
            for (const MPI_Status& status : statuses_)
                check(status.MPI_ERROR == MPI_ERR_PENDING ? MPI_SUCCESS : status.MPI_ERROR);
        check(code);
        return complete != 0;
    }

    /// As above, when errors say nothing any more.
    bool requests_gone() noexcept {
        bool all = true;
        for (MPI_Request& request : requests_) {
            int complete = 1;
            if (request != MPI_REQUEST_NULL)
                MPI_Test(&request, &complete, MPI_STATUS_IGNORE);
            all = all && complete != 0;
        }
        return all;
    }

    MPI_Request& add_request() { return requests_.emplace_back(MPI_REQUEST_NULL); }

  private:
    MpiComm& comm_;
    Operation operation_;
    bool complete_ = false;
    std::vector<MPI_Request> requests_;
    std::vector<MPI_Status> statuses_;
};

class MpiSend final : public MpiMessage {
  public:
    MpiSend(MpiComm& comm, Index block_bytes, const Operation& send) : MpiMessage(comm, send) {
        const Index bytes = send.in_size * size_of(send.type);
        for (Index first = 0; first == 0 || first < bytes; first += block_bytes)
            check(MPI_Isend(send.in + first, int(std::min(block_bytes, bytes - first)), MPI_BYTE, send.peer, send.tag,
                            this->comm(), &add_request()));
    }

    /// A send cannot be relied on to be cancelled.
    bool revoke() noexcept override { return !mpi_is_alive() || requests_gone(); }

  private:
    bool advance_blocks() override { return requests_complete(); }
};

/// It gives MPI its memory only when a message of the right size has come: Open MPI 4.1 writes behind the end of memory
/// that is too small for a long message, and what nothing has come for is taken back without asking MPI.
class MpiReceive final : public MpiMessage {
  public:
    /// `lines`: of all receives on `comm`.
    MpiReceive(MpiComm& comm, Index block_bytes, const Operation& receive, Lines& lines)
        : MpiMessage(comm, receive), block_bytes_(block_bytes), lines_(lines) {
        lines_.join(receive, this);
    }

    ~MpiReceive() override { leave_line(); }

    bool revoke() noexcept override {
        leave_line();
        return !mpi_is_alive() || requests_gone();
    }

  private:
    bool advance_blocks() override {
        if (in_line_ && lines_.is_first(operation(), this))
            while (in_line_ && take_block()) {
            }
        return !in_line_ && requests_complete();
    }

    /// Takes the next block if it has come.
    bool take_block() {
        int here = 0;
        MPI_Message message = MPI_MESSAGE_NULL;
        MPI_Status status;
        check(MPI_Improbe(operation().peer, operation().tag, comm(), &here, &message, &status));
        if (here == 0)
            return false;
        int sent = 0;
        MPI_Get_count(&status, MPI_BYTE, &sent);
        const Index bytes = operation().out_size * size_of(operation().type);
        const Index wanted = std::min(block_bytes_, bytes - taken_);
        if (sent != wanted)
            refuse(message, sent, wanted);
        check(MPI_Imrecv(operation().out + taken_, sent, MPI_BYTE, &message, &add_request()));
        taken_ += wanted;
        if (taken_ == bytes)
            leave_line();
        return true;
    }

    /// Has it come all the same, so that its sender can go on.
    [[noreturn]] void refuse(MPI_Message message, int sent, Index wanted) {
        refused_.resize(std::size_t(sent));
        check(MPI_Imrecv(refused_.data(), sent, MPI_BYTE, &message, &add_request()));
        throw ShapeError(concat(text(), ": ", sent, " bytes are sent, ", wanted, " are expected"));
    }

    void leave_line() noexcept {
        if (std::exchange(in_line_, false))
            lines_.leave(this);
    }

    Index block_bytes_;
    Lines& lines_;
    bool in_line_ = true;
    Index taken_ = 0; // bytes
    std::vector<std::byte> refused_;
};

} // namespace reigen::inline REIGEN_INSTRUCTION_SET::detail
