// Shows, on the smallest example, how a product is split over ranks.
//
//     split_matrix --ranks 2 --split rows
//     mpirun -n 4 split_matrix --split columns

#include <split_matrix/last_bits.hpp>
#include <split_matrix/product.hpp>

#include <support/checks.hpp>
#include <support/console.hpp>
#include <support/program.hpp>

#include <string>

int main(int argc, char** argv) {
    CLI::App app(
        "Multiplies [2 3] by [1 0 1 2; 0 1 3 4] with the columns or the rows of the second split over the "
        "ranks: draws which rank holds what, where parts are concatenated and where they are summed, and shows "
        "what the order of a sum does to its last bits.",
        "split_matrix");
    std::string split = "columns";
    app.add_option("--split", split, "What of the second matrix is split")
        ->check(examples::one_of({"columns", "rows"}))
        ->capture_default_str();
    return examples::run_program(app, argc, argv, [&](const reigen::Communicator& world) {
        const reigen::Mesh mesh(world, {{reigen::tp, world.size()}});
        std::ostream& out = examples::console(world);
        if (split == "columns")
            split_matrix::show_split_columns(mesh, out);
        else
            split_matrix::show_split_rows(mesh, out);
        split_matrix::show_last_bits(mesh, out);
        return 0;
    });
}
