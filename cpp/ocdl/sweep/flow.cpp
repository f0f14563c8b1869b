#include "ocdl/sweep/flow.hpp"

namespace ocdl {

template void forward<double>(const Network&, const double*, const double*, Index,
                              const ForwardResults<double>&, Workspace<double>&);
template void forward<float>(const Network&, const float*, const float*, Index, const ForwardResults<float>&,
                             Workspace<float>&);
template void tangent<double>(const Network&, const double*, const double*, Index, const double*,
                              const double*, double*, Workspace<double>&);
template void tangent<float>(const Network&, const float*, const float*, Index, const float*, const float*,
                             float*, Workspace<float>&);

}  // namespace ocdl
