// reigen: a layer's tokens are split over dp|cp or over dp|cp|tp; make it a layer of
// residual_on_every_rank or of residual_over_tp
#include <promise.hpp>

#include <reigen/nn/norm.hpp>

void promise(const Mesh& mesh) {
#ifdef REIGEN_FORBIDDEN
    Norm<float, replicated>(mesh, "norm", 4, NormKind::rms_norm);
#else
    Norm<float, residual_over_tp>(mesh, "norm", 4, NormKind::rms_norm);
#endif
}
