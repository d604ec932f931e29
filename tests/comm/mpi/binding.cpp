#include <reigen/mpi.hpp>
#include <reigen/reigen.hpp>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

// binding MODE, under mpirun: which cores the ranks have when they begin, and what is expected of them then.

namespace {

using namespace reigen;
using detail::Cores;

Cores own_cores() {
    return detail::cores_of(detail::allowed_set());
}

void keep_to(const Cores& cores) {
    const cpu_set_t set = detail::set_of(cores);
    require(sched_setaffinity(0, sizeof set, &set) == 0, "this process may not choose its cores");
}

int threads() {
#ifdef _OPENMP
    return omp_get_max_threads();
#else
    return -1;
#endif
}

/// "0 1 ", of every rank.
std::vector<std::string> cores_of_ranks(const Communicator& world) {
    std::string text;
    for (const int core : own_cores())
        text += concat(core, ' ');
    return all_gather_texts(world, text);
}

void expect_launched(const Communicator& world, const Cores& launched) {
    require<std::logic_error>(own_cores() == launched, "cores have changed");
    require<std::logic_error>(describe(world).find("its share") == std::string::npos, describe(world));
}

/// Shares that are disjoint and of equal size but for one core, OpenMP's threads as many.
void expect_shares(const Communicator& world, const Cores& launched) {
    std::string all;
    for (const std::string& cores : cores_of_ranks(world))
        all += cores;
    require<std::logic_error>(std::ranges::count(all, ' ') == std::ptrdiff_t(launched.size()), "the shares are ", all);
    for (const int core : launched)
        require<std::logic_error>((' ' + all).find(concat(' ', core, ' ')) != std::string::npos, "nobody has ", core);
    const std::size_t ranks = std::size_t(world.size());
    const std::size_t mine = own_cores().size();
    require<std::logic_error>(mine >= 1 && mine <= (launched.size() + ranks - 1) / ranks + 1, mine, " cores");
    const std::string share = concat("its share of ", detail::to_ranges(launched));
    require<std::logic_error>(describe(world).find(share) != std::string::npos, describe(world));
}

/// Where the system tells where memory lies, it tells that of the Buffers that others can read.
void expect_pages() {
    const auto buffer = Buffer<double>::zeros(1 << 16);
    const auto bytes = std::as_bytes(buffer.span());
    const auto told = detail::memory_nodes_under(bytes, 4);
    const auto pages = detail::own_place().pages;
    require<std::logic_error>(told.empty() || pages.size() >= told.size(), pages.size(), " pages of ", told.size());
}

void expect_threads(int wanted) {
    require<std::logic_error>(threads() == -1 || threads() == wanted, threads(), " threads, want ", wanted);
}

/// A host that owns MPI, asks for its ranks to be bound or not, and is asked for nothing it did not want.
int host(const Cores& launched, Binding binding, bool shares) {
    MPI_Init(nullptr, nullptr);
    {
        const Communicator world = mpi_communicator(MPI_COMM_WORLD, {.binding = binding});
        shares ? expect_shares(world, launched) : expect_launched(world, launched);
        const Communicator again = mpi_communicator(MPI_COMM_WORLD, {.binding = binding}); // changes nothing
        shares ? expect_shares(again, launched) : expect_launched(again, launched);
    }
    MPI_Finalize();
    return EXIT_SUCCESS;
}

int run(const std::string& mode, int argc, char** argv) {
    const int rank = launcher().value_or(Launcher{}).rank();
    Cores cores = own_cores();
    if (mode == "outnumbered")
        keep_to(cores = {cores.front()});
    if (mode == "bound")
        keep_to(cores = {cores[std::size_t(rank) % cores.size()]});
    if (mode == "host")
        return host(cores, Binding::never, false);
    if (mode == "host_told") // by the environment
        return host(cores, Binding::never, true);
    if (mode == "host_asks")
        return host(cores, Binding::automatic, true);
    return mpi_main(argc, argv, [&](const Communicator& world) {
        const std::string description = describe(world);
        if (world.rank() == 0)
            std::fputs(description.c_str(), stdout);
        expect_pages();
        if (mode != "shares" && mode != "threads")
            return expect_launched(world, cores);
        expect_shares(world, cores);
        expect_threads(mode == "threads" ? 5 : int(own_cores().size()));
    });
}

} // namespace

int main(int argc, char** argv) {
    const std::string mode = argc > 1 ? argv[1] : "shares";
    if (own_cores().size() < 2) {
        std::puts("one core is nothing to share");
        return 77;
    }
    try {
        return run(mode, argc, argv);
    } catch (const std::exception& error) {
        std::fprintf(stderr, "%s\n", error.what());
        return EXIT_FAILURE; // without MPI_Finalize: the launcher ends the others
    }
}
