#include <train_gpt/run.hpp>

#include <train_gpt/audit.hpp>
#include <train_gpt/progress.hpp>
#include <train_gpt/sample.hpp>
#include <train_gpt/schedule.hpp>
#include <train_gpt/training.hpp>
#include <train_gpt/verify.hpp>

#include <support/console.hpp>
#include <support/first_rank.hpp>
#include <support/memory_report.hpp>
#include <support/mesh_option.hpp>
#include <support/units.hpp>

#include <reigen/comm/trace.hpp>

#include <chrono>
#include <cmath>
#include <ostream>

namespace train_gpt {
namespace {

using examples::count_text;
using examples::fixed_text;

void introduce(std::ostream& out, const Options& o, const std::vector<reigen::MeshAxis>& axes, const Corpus& corpus) {
    out << "text        " << count_text(Index(corpus.training().size())) << " bytes to train on, "
        << count_text(Index(corpus.held_out().size())) << " held out\n"
        << "model       " << o.layers << " blocks of width " << o.width << ", " << o.heads << " heads on " << o.kv_heads
        << " key/value heads, context " << o.context << ", " << o.dtype << '\n'
        << "mesh        " << to_string(std::span(axes)) << ", " << o.layout << " layout, residual stream "
        << (o.sequence_parallel ? "split over tp\n" : "on every rank of tp\n") << "training    " << o.steps
        << " steps of " << count_text(o.tokens_per_step()) << " tokens\n";
}

StepResult traced_step(Training& training, Index step) {
    const reigen::TraceStep scope;
    return training.step(step);
}

/// Trains all steps; their losses.
std::vector<double> train(Training& training, const Options& options, Progress progress, AuditedRun& audit,
                          std::ostream& csv) {
    const auto start = std::chrono::steady_clock::now();
    const Schedule rate = schedule(options);
    std::vector<double> losses;
    csv << "step,tokens,loss,learning_rate,gradient_norm,seconds\n";
    for (Index step = 0; step < options.steps; ++step) {
        const auto [loss, gradient_norm] = traced_step(training, step);
        require_finite(loss, step, training);
