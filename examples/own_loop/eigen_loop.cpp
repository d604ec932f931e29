#include <own_loop/own_loop.hpp>

using namespace own_loop;

// Fits y = tanh(x W1) W2 to given outputs: gradients by hand, descent with momentum.
void train(const Settings& s, const Report& report) {
    const Matrix x = numbers(s.samples, s.inputs, 1, 1);
    const Matrix wanted = numbers(s.samples, s.outputs, 1, 2);

    Matrix w1 = numbers(s.inputs, s.hidden, 0.3, 3);
    Matrix w2 = numbers(s.hidden, s.outputs, 0.3, 4);
    Matrix v1 = Matrix::Zero(w1.rows(), w1.cols());
    Matrix v2 = Matrix::Zero(w2.rows(), w2.cols());

    for (int step = 1; step <= s.steps; ++step) {
        const Matrix h = (x * w1).array().tanh();
        const Matrix y = h * w2;

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
