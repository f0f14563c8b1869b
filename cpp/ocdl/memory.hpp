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

/// Checks the available memory before a large allocation: a system that overcommits kills the process later,
/// without a message.
namespace ocdl {

/// Too little memory; the message names the purpose, the size and what is available.
class OutOfMemory : public std::bad_alloc {
 public:
  explicit OutOfMemory(std::string message) : message_(std::move(message)) {}
  const char* what() const noexcept override { return message_.c_str(); }

 private:
  std::string message_;
};

#if defined(__wasi__)

/// WebAssembly has 32-bit addresses, and no system call that returns less.
inline double available_memory() { return 0x1p32; }

#else

namespace detail {

/// The number of bytes after `name` in /proc/meminfo, or, without a name, the first number of a control
/// group's file; infinite if there is none.
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

/// Bytes that this process can still allocate within the limits of the system, its control group and itself.
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

/// Throws if `bytes` cannot fit. Small sizes are not checked, as a check takes longer than their use.
inline void require_memory(double bytes, const std::string& purpose) {
  constexpr double minimum_checked = 1 << 27;
  if (bytes < minimum_checked) return;
  if (const double left = available_memory(); bytes > left)
    throw OutOfMemory(purpose + " would take " + in_units(bytes) + ", and " + in_units(left) + " are free");
}

}  // namespace ocdl
