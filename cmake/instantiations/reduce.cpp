#include <reigen/comm/reduce.hpp>
