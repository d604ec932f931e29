// The yardstick: the same two layers on one rank, with Eigen alone.
#include <Eigen/Core>

using Matrix = Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

Matrix two_layers(const Matrix& x, const Matrix& w1, const Matrix& w2) {
    const Matrix hidden = (x * w1).cwiseMax(0.0F);
    return hidden * w2;
}

void two_layers_backward(const Matrix& x, const Matrix& w1, const Matrix& w2, const Matrix& dy, Matrix& dw1,
                         Matrix& dw2) {
    const Matrix hidden = (x * w1).cwiseMax(0.0F);
    dw2.noalias() += hidden.transpose() * dy;
    const Matrix dhidden = (dy * w2.transpose()).cwiseProduct((hidden.array() > 0.0F).cast<float>().matrix());
    dw1.noalias() += x.transpose() * dhidden;
}
