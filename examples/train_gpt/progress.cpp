#include <train_gpt/progress.hpp>

#include <support/units.hpp>

#include <algorithm>
#include <ostream>

namespace train_gpt {
namespace {

constexpr double seconds_between_drawings = 0.1;
constexpr Index plain_lines = 20;

std::string bar(double done, int width) {
    const int filled = std::clamp(int(done * width), 0, width);
    return '[' + std::string(std::size_t(filled), '#') + std::string(std::size_t(width - filled), '-') + "]  ";
}

std::string padded(const std::string& text, std::size_t width) {
    return std::string(width - std::min(width, text.size()), ' ') + text;
}

} // namespace

std::string progress_text(const ProgressPoint& point, int bar_width) {
    const double done = double(point.step) / double(point.steps);
    const double tokens = double(point.step * point.tokens_per_step);
    const double left = point.seconds / double(point.step) * double(point.steps - point.step);
    const std::string steps = std::to_string(point.steps);
    return (bar_width > 0 ? bar(done, bar_width) : "") + padded(std::to_string(point.step), steps.size()) + '/' +
           steps + "  loss " + examples::fixed_text(point.loss, 4) + "  " +
           padded(examples::fixed_text(tokens / point.seconds, 0), 5) + " tokens/s  " + examples::duration_text(left) +
           " left";
}

void Progress::show(const ProgressPoint& point) {
    if (columns_ > 0)
        return redraw(point);
    const Index lines = point.step * plain_lines / point.steps;
    if (point.step == 1 || lines > lines_)
        out_ << progress_text(point, 0) << std::endl;
    lines_ = lines;
}

void Progress::redraw(const ProgressPoint& point) {
    const bool last = point.step == point.steps;
    if (!last && point.seconds - drawn_at_ < seconds_between_drawings)
        return;
    drawn_at_ = point.seconds;
    const int text_width = int(progress_text(point, 0).size()) + 5;
    const std::string line = progress_text(point, std::clamp(columns_ - text_width, 0, 30));
    out_ << '\r' << line << "\x1b[K" << (last ? "\n" : "") << std::flush;
}

} // namespace train_gpt
