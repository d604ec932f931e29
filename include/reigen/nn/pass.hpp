#pragma once

#include <reigen/layout/sequences.hpp>

namespace reigen::inline REIGEN_INSTRUCTION_SET {

/// What layers are told about one pass besides their input.
struct Pass {
    Sequences sequences;   ///< how many tokens there are, and which rank holds which
    bool training = false; ///< dropout acts
    Index step = 0;        ///< step and micro-batch choose what dropout drops
    Index micro_batch = 0;
};

} // namespace reigen::inline REIGEN_INSTRUCTION_SET
