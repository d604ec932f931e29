#include <reigen/comm/collectives/reduce.hpp>
