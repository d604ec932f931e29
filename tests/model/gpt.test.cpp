// Loss and every gradient of the whole model, at global indices, against the dense GPT in double precision.

#include "model/support.hpp"

namespace gpt_test {

using namespace model_test;

namespace {

template <Placement Residual>
void expect_as_dense(const Mesh& mesh, const Case& c, const model_test::Dense& want, SequenceLayout layout) {
    SCOPED_TRACE(concat(c.name, ", ", to_string(layout), ", residual ", Residual, ", rank ", mesh.world().rank()));
    Sharding<double, Residual> model(mesh, c, layout);
    model.set(want.gpt.parameters());
    expect_matches(model.logits(), want.logits, 1e-12, "logits");
    EXPECT_NEAR(model.forward_and_backward(), want.loss, 1e-13);
    const auto parameters = model.gpt.parameters();
    synchronise_gradients<double>(parameters);
    ASSERT_EQ(parameters.size(), want.gpt.gradients().size());
    for (const auto& parameter : parameters)
        expect_gradient(parameter, want.gpt.gradients().at(parameter.name), 1e-13);
}

void expect_as_dense_on_all_meshes(const Case& c) {
    const model_test::Dense want = dense_pass(c);
    for (const auto& axes : model_meshes)
        on_mesh(axes, [&](const Mesh& mesh) {
            SCOPED_TRACE("mesh " + to_string(axes));
            for (const SequenceLayout layout : all_layouts) {
                expect_as_dense<residual_on_every_rank>(mesh, c, want, layout);
                expect_as_dense<residual_over_tp>(mesh, c, want, layout);
            }
        });
}

TEST(gpt, loss_and_all_gradients_are_the_dense_ones_with_heads_uneven_over_three_ranks) {
    expect_as_dense_on_all_meshes(uneven_heads());
}

TEST(gpt, loss_and_all_gradients_are_the_dense_ones_with_fewer_key_heads_than_ranks) {
    expect_as_dense_on_all_meshes(shared_heads());
}

TEST(gpt, float_is_as_close_as_float_can_be) {
    const Case c = uneven_heads();
    const model_test::Dense want = dense_pass(c);
    on_mesh({{cp, 2}, {tp, 2}}, [&](const Mesh& mesh) {
        Sharding<float, residual_over_tp> model(mesh, c, SequenceLayout::zigzag);
        model.set(want.gpt.parameters());
        EXPECT_NEAR(model.forward_and_backward(), want.loss, 10 * double(std::numeric_limits<float>::epsilon()));
        const auto parameters = model.gpt.parameters();
        synchronise_gradients<float>(parameters);
        for (const auto& parameter : parameters)
            expect_gradient(parameter, want.gpt.gradients().at(parameter.name),
                            100 * double(std::numeric_limits<float>::epsilon()));
    });
}

TEST(gpt, micro_batches_add_up) {
    const Case c = shared_heads();
    const model_test::Dense want = dense_pass(c);
    on_mesh({{dp, 2}, {tp, 2}}, [&](const Mesh& mesh) {
        Sharding<double, residual_over_tp> model(mesh, c, SequenceLayout::striped);
        model.set(want.gpt.parameters());
        model.forward_and_backward(0.25);
        model.forward_and_backward(0.5);
        const auto parameters = model.gpt.parameters();
        synchronise_gradients<double>(parameters);
        for (const auto& parameter : parameters)
            expect_gradient(parameter, 0.75 * want.gpt.gradients().at(parameter.name), 1e-13);
    });
}

} // namespace

} // namespace gpt_test
