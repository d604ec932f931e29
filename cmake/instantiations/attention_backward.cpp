#include <reigen/kernel/attention_backward.hpp>
