#include <pybind11/pybind11.h>

#include "ocdl/parallel.hpp"

namespace ocdl {

void bind_parallel(pybind11::module_& m) {
  ThreadLimit::watch_forks();
  m.def("set_num_threads", &ThreadLimit::set, pybind11::arg("threads"));
  m.def("get_num_threads", &ThreadLimit::get);
}

}  // namespace ocdl
