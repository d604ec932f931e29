// Two ranks under mpirun.
#include "product.hpp"

#include <reigen/mpi.hpp>

int main(int argc, char** argv) {
    return reigen::mpi_main(argc, argv, check_product);
}
