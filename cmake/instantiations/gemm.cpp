#include <reigen/kernel/gemm.hpp>
