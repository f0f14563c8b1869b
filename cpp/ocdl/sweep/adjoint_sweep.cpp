#include "ocdl/sweep/adjoint_sweep.hpp"

namespace ocdl {

template class AdjointSweep<double>;
template class AdjointSweep<float>;

}  // namespace ocdl
