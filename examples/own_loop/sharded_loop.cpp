#include <own_loop/own_loop.hpp>

#include <reigen/reigen.hpp>

using namespace own_loop;
using namespace reigen;

// Fits y = tanh(x W1) W2 to given outputs: gradients by hand, descent with momentum.
void train(const Settings& s, const Report& report, const Mesh& mesh) {
    const Matrix x = numbers(s.samples, s.inputs, 1, 1);
    const Matrix wanted = numbers(s.samples, s.outputs, 1, 2);

    // This rank's columns of W1 and rows of W2, and with them its part of all that follows.
    Matrix w1 = Sharded<double, split_cols(tp)>::from_global(mesh, numbers(s.inputs, s.hidden, 0.3, 3)).local();
    Matrix w2 = Sharded<double, split_rows(tp)>::from_global(mesh, numbers(s.hidden, s.outputs, 0.3, 4)).local();
    Matrix v1 = Matrix::Zero(w1.rows(), w1.cols());
    Matrix v2 = Matrix::Zero(w2.rows(), w2.cols());

    const auto all_w1 = shard<split_cols(tp)>(mesh, w1, s.inputs, s.hidden);
    const auto all_w2 = shard<split_rows(tp)>(mesh, w2, s.hidden, s.outputs);
    for (int step = 1; step <= s.steps; ++step) {
        const Matrix h = matmul(shard<replicated>(mesh, x), all_w1).local().array().tanh();
        const Matrix y = sum(matmul(shard<split_cols(tp)>(mesh, h, s.samples, s.hidden), all_w2)).local();

        const Matrix dy = (y - wanted) / s.samples;
        const Matrix dw2 = h.transpose() * dy;
        const Matrix dh = (dy * w2.transpose()).array() * (1 - h.array().square());
        const Matrix dw1 = x.transpose() * dh;

        v1 = 0.9 * v1 - s.rate * dw1;
        v2 = 0.9 * v2 - s.rate * dw2;
        w1 += v1;
        w2 += v2;
        report(step, (y - wanted).squaredNorm() / s.samples);
    }
}
