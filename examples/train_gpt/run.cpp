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
        << (o.sequence_parallel ? "split over tp" : "on every rank of tp")
        << (o.wire == "bfloat16" ? ", bfloat16 on the wire\n" : "\n") << "training    " << o.steps << " steps of "
        << count_text(o.tokens_per_step()) << " tokens\n";
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
        const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - start;
        losses.push_back(loss);
        progress.show({step + 1, options.steps, options.tokens_per_step(), loss, elapsed.count()});
        csv << step + 1 << ',' << (step + 1) * options.tokens_per_step() << ',' << loss << ',' << rate(step) << ','
            << gradient_norm << ',' << elapsed.count() << std::endl;
        audit.after(step, training);
    }
    return losses;
}

void report_held_out(std::ostream& out, Training& training, const Corpus& corpus) {
    const reigen::TraceScope scope("held out");
    const double loss = training.held_out_loss();
    const double entropy = byte_entropy(corpus.held_out());
    out << "held out    loss " << fixed_text(loss, 4) << " nats per byte; the entropy of its byte frequencies is "
        << fixed_text(entropy, 4) << ", " << fixed_text(std::abs(entropy - loss), 4)
        << (loss < entropy ? " above the loss\n" : " below the loss\n");
}

/// Continues the beginning of the held-out text.
void print_sample(std::ostream& out, Training& training, const Options& options, const Corpus& corpus) {
    const reigen::TraceScope scope("sample");
    const std::string prompt(corpus.held_out().substr(0, std::size_t(std::min<Index>(options.context, 64))));
    const std::string text = continue_text(training, prompt, options);
    out << "sample      " << options.sample << " bytes after the first " << prompt.size()
        << " of the held-out text, at temperature " << options.temperature << "\n"
        << "------------\n"
        << printable(prompt) << "|>" << printable(text) << "\n------------\n";
}

} // namespace

int run(const Options& options, const reigen::Communicator& world) {
    require_consistent(options);
    const auto axes = examples::mesh_axes(options.mesh, world.size());
    const Corpus corpus(examples::text_of_first_rank(world, [&] { return load_text(options.text); }), options.context);
    std::ofstream csv = examples::file_of_first_rank(world, options.csv);
    std::ostream& out = examples::console(world);
    introduce(out, options, axes, corpus);

    std::vector<double> one_rank;
    if (options.verify) {
        out << "verify      training " << verified_steps(options) << " steps on one rank first" << std::endl;
        one_rank = losses_on_one_rank(world, options, corpus);
    }

    reigen::memory_account()->reset_peaks();
    const reigen::Mesh mesh(world, axes);
    const auto training = make_training(options, mesh, corpus);
    out << "parameters  " << count_text(training->parameters()) << std::endl;
    if (options.ledger)
        training->print_ledger(out);
    AuditedRun audit(options, out);
    const auto losses = train(*training, options, Progress(out, examples::terminal_columns(world)), audit, csv);

    const bool csv_failed = csv.is_open() && !csv;
    if (csv_failed)
        out << "csv         " << options.csv << " is not complete: writing to it failed\n";
    out << examples::memory_report(world);
    report_held_out(out, *training, corpus);
    if (options.sample > 0)
        print_sample(out, *training, options, corpus);
    const bool verified = !options.verify || agrees_with_one_rank(out, losses, one_rank, options);
    return verified && audit.passed() && !csv_failed ? 0 : 1;
}

} // namespace train_gpt
