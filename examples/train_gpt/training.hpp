#pragma once

#include <train_gpt/corpus.hpp>
#include <train_gpt/options.hpp>

#include <reigen/comm/mesh.hpp>
#include <reigen/layout/audit.hpp>
#include <reigen/layout/nonfinite.hpp>

#include <iosfwd>
#include <memory>
#include <string_view>
#include <vector>

namespace train_gpt {

struct StepResult {
    double loss = 0;          // nats per byte, mean over the global batch, before the update
    double gradient_norm = 0; // of the whole model, before clipping
};

/// A model in training on one mesh: the face that hides scalar and placement. Every call is collective over the mesh.
class Training {
  public:
    virtual ~Training() = default;

    /// One optimizer step on the global batch that seed and step number decide: the same on every mesh.
    virtual StepResult step(Index step) = 0;

    /// Mean loss on the held-out tail of the text.
    virtual double held_out_loss() = 0;

    /// The logits of the byte that follows this text, by one forward pass.
    virtual std::vector<double> next_logits(std::string_view text) = 0;

    /// Every parameter: name, placement, global and local shapes.
    virtual void print_ledger(std::ostream& out) const = 0;

    /// `rows` random rows of the model's products and attentions on this step's batch, recomputed in double.
    virtual std::vector<reigen::NamedAudit> audit(Index step, Index rows) = 0;

    /// Parameters and gradients that hold a NaN or an infinity.
    virtual std::vector<reigen::NonFinite> nonfinite() const = 0;

    /// Elements of all parameters, each counted once.
    virtual Index parameters() const = 0;
};

/// A new model, spread over the mesh as the options say. Options, mesh and corpus must outlive it.
std::unique_ptr<Training> make_training(const Options& options, const reigen::Mesh& mesh, const Corpus& corpus);

} // namespace train_gpt
