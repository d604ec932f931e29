// Two ranks as threads of this process.
#include "product.hpp"

#include <cstdio>

int main() {
    reigen::run_threads(2, check_product);
    std::printf("reigen %d, compiled for %s\n", REIGEN_VERSION, reigen::instruction_set);
}
