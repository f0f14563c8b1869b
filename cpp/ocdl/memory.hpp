#pragma once

#include <algorithm>
#include <cstdio>
#include <limits>
#include <new>
#include <string>

#if !defined(__wasi__)
#include <sys/resource.h>
#include <unistd.h>

#include <fstream>
#endif

/// How much memory there is, asked before much is taken: a system that hands out more than it has ends the
/// process later, without a word.
namespace ocdl {

/// Memory that is not there; says for what, how much it would take and how much is left.
class OutOfMemory : public std::bad_alloc {
 public:
  explicit OutOfMemory(std::string message) : message_(std::move(message)) {}
  const char* what() const noexcept override { return message_.c_str(); }

 private:
  std::string message_;
};

#if defined(__wasi__)

/// WebAssembly has 32 bits of addresses, and no system that could be asked.
inline double available_memory() { return 0x1p32; }

#else

namespace detail {

/// The number of bytes behind a name in /proc/meminfo, or that a file of a control group begins with;
/// infinite where there is none.
inline double bytes_in(const char* path, const std::string& name = "") {
  std::ifstream file(path);
  double unit = 1, number = 0;
  for (std::string word; !name.empty() && file >> word;)
    if (word == name) {
      unit = 1024;
      break;
    }
  return file >> number ? unit * number : std::numeric_limits<double>::infinity();
}

}  // namespace detail

/// Bytes that this process can still take: what the system, its control group and its own limit leave.
inline double available_memory() {
  using detail::bytes_in;
  double left = bytes_in("/proc/meminfo", "MemAvailable:") + bytes_in("/proc/meminfo", "SwapFree:");
  left = std::min(
      left, bytes_in("/sys/fs/cgroup/memory.max") -
                std::min(bytes_in("/sys/fs/cgroup/memory.current"), bytes_in("/sys/fs/cgroup/memory.max")));
  const double page = static_cast<double>(sysconf(_SC_PAGESIZE));
  if (left == std::numeric_limits<double>::infinity())
    left = page * static_cast<double>(sysconf(_SC_PHYS_PAGES));
  rlimit limit{};
  if (getrlimit(RLIMIT_AS, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY) {
    const double mapped = page * bytes_in("/proc/self/statm");
    left = std::min(left, std::max(0.0, static_cast<double>(limit.rlim_cur) - mapped));
  }
  return left;
}

#endif

inline std::string in_units(double bytes) {
  const char* unit = "MB";
  double number = bytes / 1e6;
  for (const char* larger : {"GB", "TB", "PB", "EB"})
    if (number >= 999.5) {
      number /= 1e3;
      unit = larger;
    }
  char text[32];
  std::snprintf(text, sizeof text, "%.3g %s", number, unit);
  return text;
}

/// Refuses what cannot fit; little is not looked at, which would take longer than to use it.
inline void require_memory(double bytes, const std::string& purpose) {
  constexpr double little = 1 << 27;
  if (bytes < little) return;
  if (const double left = available_memory(); bytes > left)
    throw OutOfMemory(purpose + " would take " + in_units(bytes) + ", and " + in_units(left) + " are free");
}

}  // namespace ocdl
