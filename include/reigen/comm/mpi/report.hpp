#pragma once

#include <reigen/comm/communicator/run.hpp>
#include <reigen/comm/mpi/comm.hpp>
#include <reigen/comm/mpi/order.hpp>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace reigen::inline REIGEN_INSTRUCTION_SET::detail {

/// How a rank's part of a job ends, in the order in which ranks have the word: an error of its own, one that says only
/// that others did not do their part, or well.
enum class Ending : int { cause, symptom, returned, unknown };

inline Ending ending_of(const std::exception_ptr& exception) {
    try {
        std::rethrow_exception(exception);
    } catch (const TimeoutError&) {
        return Ending::symptom;
    } catch (const PeerError&) {
        return Ending::symptom;
    } catch (const CommunicationError&) {
        return Ending::symptom;
    } catch (...) {
        return Ending::cause;
    }
}

/// Lets the ranks of a job that fail at about the same time find the one that speaks for all of them.
///
/// Each tells the others how it ended, and listens for a moment. Then the first in the order (ending, rank) prints its
/// message and aborts the job; one that has heard of another with the word waits a little for that, and does it all the
/// same if the job goes on. No step waits for another rank without a limit, or needs its help.
class MpiReport {
  public:
    /// Collective over the world.
    MpiReport() {
        MPI_Comm_rank(comm_.get(), &rank_);
        int size = 1;
        MPI_Comm_size(comm_.get(), &size);
        heard_.assign(std::size_t(size), Ending::unknown);
    }

    MpiReport(const MpiReport&) = delete;
    MpiReport& operator=(const MpiReport&) = delete;

    /// What a rank that has returned does while it waits for the others: it tells those who fail that it has.
    void answer() {
        for (const int failed : listen())
            tell(failed, Ending::returned);
    }

    /// `returned`: the rank had done its part, and what ends it is that others did not.
    [[noreturn]] void end_job(const std::exception_ptr& exception, bool returned) {
        const Ending mine = returned ? Ending::returned : ending_of(exception);
        for (int peer = 0; peer < size(); ++peer)
            if (peer != rank_)
                tell(peer, mine);
        const auto start = Clock::now();
        while (seconds_since(start) < moment(mine) && !knows_enough(mine)) {
            listen();
            rest(seconds_since(start));
        }
        if (other_has_the_word(mine))
            std::this_thread::sleep_for(std::chrono::seconds(2));
        abort(mine == Ending::cause ? message_of(exception) : message_of(exception) + others());
    }

    /// Prints "[rank r of P] message" and ends all ranks.
    [[noreturn]] static void abort(const std::string& message) {
        int rank = 0;
        int size = 1;
        MPI_Comm_rank(numbered_world(), &rank);
        MPI_Comm_size(numbered_world(), &size);
        std::fflush(stdout);
        std::fputs(concat("[rank ", rank, " of ", size, "] ", message, '\n').c_str(), stderr);
        std::fflush(stderr);
        // MPICH's launcher, for one, does not read on in what a rank has written when that aborts.
        std::this_thread::sleep_for(std::chrono::milliseconds(200));
        MPI_Abort(MPI_COMM_WORLD, EXIT_FAILURE);
        std::_Exit(EXIT_FAILURE);
    }

  private:
    static MPI_Comm duplicate_of_world() {
        MPI_Comm duplicate = MPI_COMM_NULL;
        mpi_check(MPI_Comm_dup(numbered_world(), &duplicate), "MPI_Comm_dup");
        return duplicate;
    }

    int size() const { return int(heard_.size()); }

    /// Seconds to listen. Ranks that time out together do so half a second apart, as `Task::end` has it, and one that
    /// has only waited for the end of the others knows least.
    static double moment(Ending mine) {
        constexpr double moments[] = {0.2, 0.8, 1.6};
        return moments[int(mine)];
    }

    /// A few bytes, which every transport takes without waiting for their receiver.
    void tell(int peer, Ending ending) {
        static constexpr int words[] = {int(Ending::cause), int(Ending::symptom), int(Ending::returned)};
        MPI_Request request = MPI_REQUEST_NULL;
        if (MPI_Isend(&words[int(ending)], 1, MPI_INT, peer, 0, comm_.get(), &request) == MPI_SUCCESS)
            MPI_Request_free(&request);
    }

    /// The ranks that were heard of now.
    std::vector<int> listen() {
        std::vector<int> news;
        for (;;) {
            int here = 0;
            MPI_Status status;
            if (MPI_Iprobe(MPI_ANY_SOURCE, 0, comm_.get(), &here, &status) != MPI_SUCCESS || here == 0)
                return news;
            int ending = 0;
            if (MPI_Recv(&ending, 1, MPI_INT, status.MPI_SOURCE, 0, comm_.get(), MPI_STATUS_IGNORE) != MPI_SUCCESS)
                return news;
            heard_[std::size_t(status.MPI_SOURCE)] = Ending(ending);
            news.push_back(status.MPI_SOURCE);
        }
    }

    bool other_has_the_word(Ending mine) const {
        for (int peer = 0; peer < size(); ++peer) {
            const Ending theirs = heard_[std::size_t(peer)];
            if (peer != rank_ && std::pair(theirs, peer) < std::pair(mine, rank_))
                return true;
        }
        return false;
    }

    /// Whether nothing that may still be heard can change who has the word, or what there is to say.
    bool knows_enough(Ending mine) const {
        if (other_has_the_word(mine) && mine == Ending::cause)
            return true;
        for (int peer = 0; peer < (mine == Ending::cause ? rank_ : size()); ++peer)
            if (peer != rank_ && heard_[std::size_t(peer)] == Ending::unknown)
                return false;
        return true;
    }

    /// What is known of the ranks that did not fail: one of them is why others did.
    std::string others() const {
        return ranks_that("returned", Ending::returned) + ranks_that("neither failed nor returned", Ending::unknown);
    }

    std::string ranks_that(const char* did, Ending ending) const {
        constexpr int longest = 16;
        std::string list;
        int count = 0;
        for (int peer = 0; peer < size(); ++peer)
            if (peer != rank_ && heard_[std::size_t(peer)] == ending && ++count <= longest)
                list += concat(count == 1 ? "" : ", ", peer);
        if (count == 0)
            return "";
        return concat(count == 1 ? "; rank " : "; ranks ", list, count > longest ? ", ..." : "",
                      count == 1 ? " has " : " have ", did);
    }

    MpiComm comm_{duplicate_of_world()};
    int rank_ = 0;
    std::vector<Ending> heard_; // of each rank
};

} // namespace reigen::inline REIGEN_INSTRUCTION_SET::detail
