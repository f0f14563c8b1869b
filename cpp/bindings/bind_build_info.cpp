#include <pybind11/pybind11.h>

#include <Eigen/Core>
#include <string>

#include "ocdl/kernel/pack.hpp"

namespace py = pybind11;

namespace ocdl {
namespace {

#define OCDL_STRING_(x) #x
#define OCDL_STRING(x) OCDL_STRING_(x)

#if defined(__clang__)
constexpr const char* compiler = "clang " __clang_version__;
#elif defined(__GNUC__)
constexpr const char* compiler = "gcc " __VERSION__;
#else
constexpr const char* compiler = "unknown";
#endif

constexpr const char* eigen = OCDL_STRING(EIGEN_WORLD_VERSION) "." OCDL_STRING(
    EIGEN_MAJOR_VERSION) "." OCDL_STRING(EIGEN_MINOR_VERSION);

#ifdef _OPENMP
constexpr const char* openmp = OCDL_STRING(_OPENMP);  // the date of the specification, yyyymm
#else
constexpr const char* openmp = "none";
#endif

py::dict build_info() {
  py::dict info;
  info["variant"] = OCDL_VARIANT;
  info["vector_bits"] = 8 * vector_bytes;
  info["eigen"] = eigen;
  info["compiler"] = compiler;
  info["openmp"] = openmp;
  return info;
}

}  // namespace

void bind_build_info(py::module_& m) { m.def("build_info", &build_info); }

}  // namespace ocdl
