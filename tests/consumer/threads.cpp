// Two ranks as threads of this process.
#include <reigen/reigen.hpp>

#include <cstdio>
#include <vector>

int main() {
    int failures = 0;
    reigen::run_threads(2, [&](const reigen::Communicator& world) {
        std::vector<float> sum = {float(world.rank() + 1)};
        world.all_reduce(sum);
        if (world.rank() == 0)
            failures += sum[0] != 3;
    });
    std::printf("reigen %d, compiled for %s\n", REIGEN_VERSION, reigen::instruction_set);
    return failures;
}
