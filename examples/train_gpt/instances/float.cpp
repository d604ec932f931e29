#include <train_gpt/gpt_training.hpp>

template std::unique_ptr<train_gpt::Training>
train_gpt::make_gpt_training<float, reigen::residual_on_every_rank>(const Options&, const reigen::Mesh&, const Corpus&);
