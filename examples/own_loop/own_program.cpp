#include <own_loop/own_program.hpp>

#include <support/checks.hpp>
#include <support/help_format.hpp>
#include <support/program.hpp>

#ifdef OWN_LOOP_WITH_MPI
#include <mpi.h>
#endif

#include <algorithm>
#include <cstdio>
#include <iostream>
#include <memory>

namespace own_loop {

OwnProgram::OwnProgram(int argc, char** argv, const std::string& name, const std::string& description)
    : argc_(argc), argv_(argv), app_(description, name) {
    app_.formatter(std::make_shared<examples::HelpFormat>());
    const auto size = [&](const char* option, int& target, const char* meaning) {
        app_.add_option(option, target, meaning)->check(examples::at_least(1))->capture_default_str();
    };
    size("--samples", settings_.samples, "Rows of the data");
    size("--inputs", settings_.inputs, "Columns of the data");
    size("--hidden", settings_.hidden, "Features between the two products");
    size("--outputs", settings_.outputs, "Columns of what is fitted");
    size("--steps", settings_.steps, "Steps of descent");
    app_.add_option("--rate", settings_.rate, "Length of a step")->check(examples::positive())->capture_default_str();
#ifdef OWN_LOOP_WITH_MPI
    if (examples::started_by_launcher()) {
        MPI_Init(&argc_, &argv_);
        MPI_Comm_rank(MPI_COMM_WORLD, &rank_);
        under_mpi_ = true;
    }
#endif
}

OwnProgram::~OwnProgram() {
#ifdef OWN_LOOP_WITH_MPI
    if (under_mpi_)
        MPI_Finalize();
#endif
}

std::optional<int> OwnProgram::parse() {
    try {
        app_.parse(argc_, argv_);
        const auto features = std::max({settings_.inputs, settings_.hidden, settings_.outputs});
        const auto wrong =
            examples::too_many({{"--samples", double(settings_.samples)}, {"features", double(features)}});
        if (!wrong.empty())
            return complain(wrong);
        return std::nullopt;
    } catch (const CLI::CallForHelp&) {
        if (rank_ == 0)
            std::cout << app_.help() << std::flush;
        return 0;
    } catch (const CLI::ParseError& error) {
        return complain(std::string(error.what()) + " (--help lists the options)");
    }
}

int OwnProgram::complain(const std::string& message) const {
    if (rank_ == 0)
        print_error(message);
    return 2;
}

int OwnProgram::fail(const std::string& message) const {
    print_error(message);
#ifdef OWN_LOOP_WITH_MPI
    if (under_mpi_)
        MPI_Abort(MPI_COMM_WORLD, 1);
#endif
    return 1;
}

int OwnProgram::end(int code) const {
    if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0)
        return code;
    print_error("writing to the standard output failed");
    return std::max(code, 1);
}

void OwnProgram::print_error(std::string line) const {
    std::replace(line.begin(), line.end(), '\n', ' ');
    std::cerr << app_.get_name() + ": " + line + "\n" << std::flush;
}

Report OwnProgram::report(int rank) const {
    const int every = std::max(1, settings_.steps / 10);
    return [=, last = settings_.steps](int step, double loss) {
        if (rank == 0 && (step == 1 || step % every == 0 || step == last))
            std::printf("step %4d   loss %.8f\n", step, loss);
    };
}

} // namespace own_loop
