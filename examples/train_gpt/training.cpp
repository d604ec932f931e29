#include <train_gpt/training.hpp>

#include <reigen/nn/residual.hpp>

namespace train_gpt {

// Defined in gpt_training.hpp, which takes long to compile: once for each scalar and placement, in instances/.
template <class S, reigen::Placement Residual>
std::unique_ptr<Training> make_gpt_training(const Options& options, const reigen::Mesh& mesh, const Corpus& corpus);

std::unique_ptr<Training> make_training(const Options& options, const reigen::Mesh& mesh, const Corpus& corpus) {
    using reigen::residual_on_every_rank;
    using reigen::residual_over_tp;
    const bool split = options.sequence_parallel;
    if (options.dtype == "double")
        return split ? make_gpt_training<double, residual_over_tp>(options, mesh, corpus)
                     : make_gpt_training<double, residual_on_every_rank>(options, mesh, corpus);
    return split ? make_gpt_training<float, residual_over_tp>(options, mesh, corpus)
                 : make_gpt_training<float, residual_on_every_rank>(options, mesh, corpus);
}

} // namespace train_gpt
