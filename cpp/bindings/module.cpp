#include <pybind11/pybind11.h>

namespace ocdl {
void bind_build_info(pybind11::module_& m);
void bind_parallel(pybind11::module_& m);
void bind_tableau(pybind11::module_& m);
void bind_network(pybind11::module_& m);
void bind_tensors(pybind11::module_& m);
void bind_objective(pybind11::module_& m);
void bind_observations(pybind11::module_& m);
void bind_evaluator(pybind11::module_& m);
void bind_optimiser(pybind11::module_& m);
void bind_training(pybind11::module_& m);
}  // namespace ocdl

PYBIND11_MODULE(OCDL_MODULE_NAME, m) {
  // Every variant calls itself ocdl._core, so that messages and pickles do not depend on the machine.
  m.attr("__name__") = "ocdl._core";
  m.doc() = "The compiled core of ocdl.";
  ocdl::bind_build_info(m);
  ocdl::bind_parallel(m);
  ocdl::bind_tableau(m);
  ocdl::bind_network(m);
  ocdl::bind_tensors(m);
  ocdl::bind_objective(m);
  ocdl::bind_observations(m);
  ocdl::bind_evaluator(m);
  ocdl::bind_optimiser(m);
  ocdl::bind_training(m);
}
