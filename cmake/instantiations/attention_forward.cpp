#include <reigen/kernel/attention_forward.hpp>
