#include "tests/random_problem.hpp"

namespace ocdl {

template class AdjointSweep<std::complex<double>>;
template class AdjointSweep<Dual<double>>;

}  // namespace ocdl
