#include "ocdl/objective/objective.hpp"

namespace ocdl {

template class Evaluation<double>;
template class Evaluation<float>;

}  // namespace ocdl
