#pragma once

#include <string_view>

/// Which instruction sets the running CPU and operating system offer. Included by the module `_cpu`, which is
/// asked before a core is imported, and by the build, which compiles the best variant for its own machine.
/// The lists of features repeat the compiler flags of each variant in CMakeLists.txt.
namespace ocdl {

inline bool supports(std::string_view variant) {
  if (variant == "baseline") return true;
#if (defined(__x86_64__) || defined(_M_X64)) && (defined(__GNUC__) || defined(__clang__))
  __builtin_cpu_init();
  const bool avx2 =
      __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("bmi2");
  if (variant == "avx2") return avx2;
  if (variant == "avx512") {
    return avx2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
           __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512bw");
  }
#endif
  return false;
}

inline const char* best_variant() {
  for (const char* variant : {"avx512", "avx2"}) {
    if (supports(variant)) return variant;
  }
  return "baseline";
}

}  // namespace ocdl
