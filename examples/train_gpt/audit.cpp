#include <train_gpt/audit.hpp>

#include <train_gpt/options.hpp>

#include <support/units.hpp>

#include <algorithm>
#include <cmath>
#include <ostream>
#include <vector>

namespace train_gpt {

void AuditedRun::after(Index step, Training& training) {
    const Index every = std::max<Index>(1, options_.steps / 10);
    if (options_.audit == 0 || (step + 1) % every != 0)
        return;
    const double allowed = options_.dtype == "double" ? 1e-12 : 1e-4;
    const auto audits = training.audit(step, options_.audit);
    const auto worst = std::ranges::max_element(audits, {}, [](const auto& audit) { return audit.report.error; });
    const bool passes = worst->report.within(allowed);
    passed_ = passed_ && passes;
    out_ << "audit       step " << step + 1 << ": largest error of " << audits.size() << " products and attentions "
         << examples::scientific_text(worst->report.error) << " in " << worst->name << ", row " << worst->report.row
         << ", column " << worst->report.col << " on rank " << worst->report.rank
         << (passes ? "\n" : ", NOT below " + examples::scientific_text(allowed) + "\n");
}

void require_finite(double loss, Index step, const Training& training) {
    if (std::isfinite(loss))
        return;
    std::string text = reigen::concat("the loss of step ", step + 1, " is ", loss);
    constexpr std::size_t named = 8; // a NaN soon is everywhere
    const std::vector<reigen::NonFinite> found = training.nonfinite();
    for (std::size_t i = 0; i < std::min(found.size(), named); ++i)
        text += "; " + to_string(found[i]);
    if (found.size() > named)
        text += reigen::concat("; and ", found.size() - named, " more");
    throw reigen::Error(text);
}

} // namespace train_gpt
