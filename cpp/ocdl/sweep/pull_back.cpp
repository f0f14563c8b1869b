#include "ocdl/sweep/pull_back.hpp"

namespace ocdl {

template class PullBack<double>;
template class PullBack<float>;

}  // namespace ocdl
