#pragma once

#include <train_gpt/batch.hpp>
#include <train_gpt/config.hpp>
#include <train_gpt/schedule.hpp>
#include <train_gpt/training.hpp>

#include <reigen/layout/ledger.hpp>
#include <reigen/layout/redistribute.hpp>
#include <reigen/nn/adamw.hpp>
#include <reigen/nn/cross_entropy.hpp>
#include <reigen/nn/gradients.hpp>

namespace train_gpt {

/// The training loop, for one scalar, one placement of the residual stream and one wire's type. What is written here is
/// what it would be on one rank: all messages are in the layers, in `synchronise_gradients`, `gradient_norm` and
/// `redistribute`.
template <class S, reigen::Placement Residual, reigen::WireType Wire>
class GptTraining final : public Training {
  public:
    GptTraining(const Options& options, const reigen::Mesh& mesh, const Corpus& corpus)
        : options_(options),
          mesh_(mesh),
          corpus_(corpus),
          model_(mesh, gpt_config(options)),
          optimizer_(model_.parameters(), {.weight_decay = options.weight_decay}),
          rate_(schedule(options)) {}

    StepResult step(Index step) override {
        const auto parameters = optimizer_.parameters();
        reigen::zero_gradients(parameters);
        double loss = 0;
        for (Index micro_batch = 0; micro_batch < options_.accumulate; ++micro_batch)
            loss += forward_and_backward(step, micro_batch) / double(options_.accumulate);
        reigen::synchronise_gradients(parameters);
        const double norm = reigen::gradient_norm(parameters);
        optimizer_.step(rate_(step), reigen::clip_factor(norm, options_.clip));
        return {loss, norm};
    }

    double held_out_loss() override {
        const std::string_view text = corpus_.held_out();
        const Starts all = even_starts(text, 64, options_.context);
        double sum = 0;
        for (std::size_t first = 0; first < all.size(); first += std::size_t(options_.batch)) {
            const auto count = std::min(all.size() - first, std::size_t(options_.batch));
            const Starts starts(all.begin() + Index(first), all.begin() + Index(first + count));
            const reigen::Pass pass{.sequences = sequences(Index(count), options_.context)};
            sum += double(count) * forward(text, starts, pass).loss;
        }
        return sum / double(all.size());
    }

    std::vector<double> next_logits(std::string_view text) override {
        const Index length = Index(text.size());
        const reigen::Pass pass{.sequences = sequences(1, length)};
        const auto ids = cut(text, {0}, length, rows(pass));
        const auto logits = reigen::redistribute<reigen::replicated>(model_.forward(ids, pass).y);
        const Index row = *logits.row_runs().find(length - 1); // rows come in the order of the layout
        const Eigen::VectorXd last = logits.local().row(row).template cast<double>();
        return {last.begin(), last.end()};
    }

    void print_ledger(std::ostream& out) const override {
        reigen::ShapeLedger ledger;
        for (const auto& parameter : optimizer_.parameters())
            ledger.add(parameter);
        ledger.print(out);
    }

    std::vector<reigen::NamedAudit> audit(Index step, Index rows) override {
        const reigen::Pass pass{.sequences = sequences(options_.batch, options_.context)};
        const Starts starts = batch_starts(step, 0);
        const auto [logits, saved] =
            model_.forward(cut(corpus_.training(), starts, options_.context, this->rows(pass)), pass);
        return model_.audit(saved, logits, {.rows = rows, .seed = std::uint64_t(step)});
    }

    std::vector<reigen::NonFinite> nonfinite() const override {
        reigen::NonFiniteSearch search(mesh_);
        search.add(optimizer_.parameters());
        return search.found();
    }

    Index parameters() const override {
        Index elements = 0;
        for (const auto& parameter : optimizer_.parameters())
            elements += parameter.rows * parameter.cols;
        return elements;
    }

  private:
    using Model = Gpt<S, Residual, Wire>;
    using CrossEntropy = reigen::VocabParallelCrossEntropy<S>;

    struct Passed {
        double loss;
        typename Model::Saved model;
        typename CrossEntropy::Saved loss_saved;
    };

    reigen::Sequences sequences(Index batch, Index length) const {
        return {.batch = batch, .length = length, .layout = layout_};
    }

    /// The rows of the global batch whose tokens this rank feeds in.
    reigen::Runs rows(const reigen::Pass& pass) const {
        const auto axes = reigen::token_axes;
        return pass.sequences.rows(mesh_, axes).runs(mesh_.rank(axes));
    }

    Passed forward(std::string_view text, const Starts& starts, const reigen::Pass& pass) {
        const Index length = pass.sequences.length;
        auto [logits, model_saved] = model_.forward(cut(text, starts, length, rows(pass)), pass);
        auto [loss, loss_saved] = cross_entropy_.forward(std::move(logits), cut(text, starts, length, rows(pass), 1));
        return {loss, std::move(model_saved), std::move(loss_saved)};
    }

    Starts batch_starts(Index step, Index micro_batch) const {
        return random_starts(corpus_.training(), options_.batch, options_.context, options_.seed, step, micro_batch);
    }

    double forward_and_backward(Index step, Index micro_batch) {
        const reigen::Pass pass{.sequences = sequences(options_.batch, options_.context),
                                .training = true,
                                .step = step,
                                .micro_batch = micro_batch};
        Passed passed = forward(corpus_.training(), batch_starts(step, micro_batch), pass);
        auto dlogits = cross_entropy_.backward(std::move(passed.loss_saved), 1 / double(options_.accumulate));
        model_.backward(std::move(passed.model), std::move(dlogits));
        return passed.loss;
    }

    const Options& options_;
    reigen::Mesh mesh_;
    const Corpus& corpus_;
    reigen::SequenceLayout layout_ = sequence_layout(options_);
    Model model_;
    reigen::AdamW<S> optimizer_;
    CrossEntropy cross_entropy_;
    Schedule rate_;
};

template <class S, reigen::Placement Residual>
std::unique_ptr<Training> make_gpt_training(const Options& options, const reigen::Mesh& mesh, const Corpus& corpus) {
    using reigen::WireType;
    if (wire_type(options) == WireType::bf16)
        return std::make_unique<GptTraining<S, Residual, WireType::bf16>>(options, mesh, corpus);
    return std::make_unique<GptTraining<S, Residual, WireType::unchanged>>(options, mesh, corpus);
}

} // namespace train_gpt
