#pragma once

#include <reigen/core/types.hpp>

#include <iosfwd>
#include <string>

namespace train_gpt {

using reigen::Index;

/// How far a training is.
struct ProgressPoint {
    Index step = 0; // steps done
    Index steps = 0;
    Index tokens_per_step = 0;
    double loss = 0;
    double seconds = 0; // since the start
};

/// "[#####-----]   75/150  loss 2.1034  5210 tokens/s  0:14 left"; without room for it, no bar.
std::string progress_text(const ProgressPoint& point, int bar_width);

/// Shows a training's progress: one line that is redrawn on a terminal, a line now and then elsewhere.
class Progress {
  public:
    /// `columns` is the width of the terminal, 0 where there is none.
    Progress(std::ostream& out, int columns) : out_(out), columns_(columns) {}

    void show(const ProgressPoint& point);

  private:
    void redraw(const ProgressPoint& point);

    std::ostream& out_;
    int columns_;
    double drawn_at_ = -1; // seconds
    Index lines_ = 0;      // twentieths of the way for which a line was written
};

} // namespace train_gpt
