#include "support/faults.hpp"

#include <reigen/comm/texts.hpp>
#include <reigen/mpi.hpp>

#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

namespace {

const reigen::Communicator* job = nullptr;

/// Runs the body on a communicator of its own, so that what a failed one leaves in flight meets no later test; then
/// all ranks of the job meet, however each of them got there.
void run_on_first(int ranks, const WorldBody& body) {
    const bool member = job->rank() < ranks;
    const reigen::Communicator world = job->split(member ? 0 : 1, job->rank());
    if (member) {
        SCOPED_TRACE(reigen::concat("rank ", world.rank(), " of ", world.size(), " under MPI"));
        world.set_deadline(30);
        try {
            body(disturbed(world));
        } catch (const std::exception& error) {
            ADD_FAILURE() << error.what();
        }
    }
    job->barrier();
}

/// Keeps a rank's failures, to be printed by rank 0.
class FailureList final : public testing::EmptyTestEventListener {
  public:
    std::string text;

  private:
    void OnTestStart(const testing::TestInfo& test) override {
        test_ = reigen::concat(test.test_suite_name(), '.', test.name());
    }

    void OnTestPartResult(const testing::TestPartResult& result) override {
        if (!result.failed())
            return;
        const char* const file = result.file_name() != nullptr ? result.file_name() : "";
        text += reigen::concat(test_, '\n', file, ':', result.line_number(), ": ", result.message(), '\n');
    }

    std::string test_;
};

/// Only rank 0 prints as the tests run; the others' failures come at the end.
FailureList& install_listeners(int rank) {
    auto& listeners = testing::UnitTest::GetInstance()->listeners();
    if (rank != 0)
        delete listeners.Release(listeners.default_result_printer());
    auto* const failures = new FailureList;
    listeners.Append(failures);
    return *failures;
}

void print_failures_of_others(const reigen::Communicator& world, const std::string& mine) {
    const auto texts = reigen::all_gather_texts(world, mine);
    if (world.rank() != 0)
        return;
    for (std::size_t r = 1; r < texts.size(); ++r)
        if (!texts[r].empty())
            std::printf("[rank %zu of %d] failed:\n%s", r, world.size(), texts[r].c_str());
}

int run_tests(const reigen::Communicator& world) {
    job = &world;
    const FailureList& failures = install_listeners(world.rank());
    std::vector<int> failed = {RUN_ALL_TESTS()};
    print_failures_of_others(world, failures.text);
    world.all_reduce(failed, reigen::Reduction::max);
    return failed[0];
}

} // namespace

void on_world(int ranks, const WorldBody& body) {
    if (ranks <= job->size())
        run_on_first(ranks, body);
}

void on_every_world(const WorldBody& body) {
    run_on_first(job->size(), body);
}

int main(int argc, char** argv) {
    setenv("REIGEN_CHECKED", "1", false);
    testing::InitGoogleTest(&argc, argv);
    return reigen::mpi_main(argc, argv, run_tests);
}
