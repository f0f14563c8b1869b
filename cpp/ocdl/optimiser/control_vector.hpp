#pragma once

#include <cstdint>
#include <cstdlib>
#include <new>
#include <utility>
#include <vector>

#include "ocdl/kernel/vector_arithmetic.hpp"

namespace ocdl {

/// Memory that the system hands out with zeros, page by page as it is used: to fill gigabytes with them would
/// take longer than an interrupt may wait. It begins with a line of the cache, as a load that crosses two
/// takes twice as long, and zeros stand behind its last number to the end of a group.
template <class T>
struct ZeroedAllocator {
  using value_type = T;

  ZeroedAllocator() = default;
  template <class U>
  ZeroedAllocator(const ZeroedAllocator<U>&) {}

  T* allocate(std::size_t count) {
    const auto numbers = static_cast<std::size_t>(whole_groups(static_cast<Index>(count)));
    const auto memory = static_cast<char*>(std::calloc(cache_line + numbers * sizeof(T), 1));
    if (!memory) throw std::bad_alloc();
    char* const first = memory + (cache_line - reinterpret_cast<std::uintptr_t>(memory) % cache_line);
    reinterpret_cast<void**>(first)[-1] = memory;  // there is room: calloc aligns to two addresses
    return reinterpret_cast<T*>(first);
  }
  void deallocate(T* first, std::size_t) noexcept { std::free(reinterpret_cast<void**>(first)[-1]); }
  /// A number without a value is 0 already.
  template <class U>
  void construct(U*) noexcept {}
  template <class U, class... Values>
  void construct(U* place, Values&&... values) {
    ::new (static_cast<void*>(place)) U(std::forward<Values>(values)...);
  }
  bool operator==(const ZeroedAllocator&) const = default;
};

/// As many numbers as a network has controls, 0 at first; the length stays.
template <class T>
using ControlVector = std::vector<T, ZeroedAllocator<T>>;

}  // namespace ocdl
