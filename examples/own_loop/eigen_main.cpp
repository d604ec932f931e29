// Trains a small network with Eigen alone: the program before it met the library.
//
//     own_loop_eigen
//     mpirun -n 4 own_loop_eigen      every rank does all of the work

#include <own_loop/own_program.hpp>

void train(const own_loop::Settings& settings, const own_loop::Report& report);

int main(int argc, char** argv) {
    own_loop::OwnProgram program(argc, argv, "own_loop_eigen", "Trains a small network with Eigen alone, on one rank.");
    if (const auto early = program.parse())
        return *early;
    train(program.settings(), program.report(program.rank()));
    return program.end(0);
}
