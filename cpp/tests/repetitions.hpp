#pragma once

#include <algorithm>
#include <cstdlib>

namespace ocdl::testing {

/// How many random problems a test draws: all, or of n the fraction that OCDL_TEST_FRACTION states, where a
/// sanitizer makes them slow.
inline int repetitions(int all) {
  const char* fraction = std::getenv("OCDL_TEST_FRACTION");
  return fraction ? std::max(1, static_cast<int>(all * std::atof(fraction))) : all;
}

}  // namespace ocdl::testing
