#include "attention_arrays.hpp"
#include "families.hpp"
#include "peers/torch.hpp"
#include "support/comparison.hpp"
#include "support/type_name.hpp"

#include <functional>
#include <memory>
#include <string>
#include <type_traits>
#include <vector>

namespace {

const AttentionCase cases[] = {{4096, 64, false}, {4096, 64, true}, {4096, 128, false}, {4096, 128, true},
                               {1024, 64, false}, {1024, 64, true}, {256, 64, false},   {256, 32, true},
                               {2048, 80, false}, {16384, 64, true}};
const AttentionCase bfloat16_cases[] = {{4096, 64, false}, {4096, 64, true}, {4096, 128, false}, {4096, 128, true}};

const char* name_of(Pass pass) {
    return pass == Pass::forward ? "attention_forward" : "attention_backward";
}

/// PyTorch's scaled_dot_product_attention, and its gradients.
template <class T>
peers::torch::Task torch_task(AttentionArrays<T>& arrays, Pass pass) {
    const auto crossing = [](const std::vector<Tokens<T>*>& all) {
        std::vector<peers::torch::Array> crossed;
        for (Tokens<T>* tokens : all)
            crossed.push_back(tokens->array());
        return crossed;
    };
    const AttentionCase& of = arrays.of;
    return {std::string(name_of(pass)) + ' ' + bench::name_of<T> + ' ' + std::to_string(of.tokens) + ' ' +
                std::to_string(of.head_dim) + ' ' + std::to_string(int(of.causal)),
            crossing(arrays.inputs()), crossing(arrays.results(pass))};
}

template <class T>
bench::Row attention_row(AttentionCase of, Pass pass) {
    using Arrays = std::shared_ptr<AttentionArrays<T>>;
    const Arrays ours = std::make_shared<AttentionArrays<T>>(of);
    ours->draw();
    ours->forward();
    std::function<std::function<double()>(const Arrays&)> error_of = [](const Arrays&) { return nullptr; };
    if constexpr (!std::is_same_v<T, double>) // which would be compared with itself
        error_of = [=, exact = std::make_shared<AttentionArrays<double>>(ours->exact(pass))](const Arrays& arrays) {
            return [=] { return attention_error(*arrays, *exact, pass); };
        };
    bench::Row row{of.flops(pass), bench::multiply_add_peak<T>,
                   bench::on_this_thread("", [=] { ours->run(pass); }, error_of(ours))};
    const Arrays theirs = std::make_shared<AttentionArrays<T>>(*ours);
    if (const auto torch = peers::torch::contender(torch_task(*theirs, pass), error_of(theirs)))
        row.peers.push_back(*torch);
    return row;
}

template <class T>
void register_case(AttentionCase of, Pass pass) {
    bench::register_row(std::string(name_of(pass)) + '/' + bench::name_of<T> + of.sizes(),
                        [=] { return attention_row<T>(of, pass); });
}

} // namespace

void register_attention() {
    for (const Pass pass : {Pass::forward, Pass::backward}) {
        for (const AttentionCase& of : cases)
            register_case<float>(of, pass);
        register_case<double>({2048, 64, false}, pass);
        for (const AttentionCase& of : bfloat16_cases)
            register_case<reigen::bfloat16>(of, pass);
    }
}
