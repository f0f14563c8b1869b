#include "ocdl/objective/objective.hpp"

namespace ocdl {

template class LossCost<double, double>;
template class LossCost<float, float>;
template class ObservedLossCost<double, double>;
template class ObservedLossCost<float, float>;
template double value_and_derivatives<double>(const Network&, const double*, const Data<double>&,
                                              const Objective&, const Derivatives<double>&,
                                              Workspace<double>&, const BlockPlan&, const Cost<double>*);
template double value_and_derivatives<float>(const Network&, const float*, const Data<float>&,
                                             const Objective&, const Derivatives<float>&, Workspace<float>&,
                                             const BlockPlan&, const Cost<float>*);

}  // namespace ocdl
