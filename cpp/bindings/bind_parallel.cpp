#include <pybind11/pybind11.h>

#include "ocdl/thread_policy.hpp"

namespace ocdl {

void bind_parallel(pybind11::module_& m) {
  ThreadLimit::watch_forks();
  m.def("set_num_threads", &ThreadLimit::set, pybind11::arg("threads"));
  m.def("get_num_threads", &ThreadLimit::get);
  m.def("insist_on_threads", &ThreadChoice::insist, pybind11::arg("always"));
}

}  // namespace ocdl
