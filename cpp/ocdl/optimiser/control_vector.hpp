#pragma once

#include <cstdlib>
#include <new>
#include <utility>
#include <vector>

namespace ocdl {

/// Memory that the system hands out with zeros, page by page as it is used: to fill gigabytes with them would
/// take longer than an interrupt may wait.
template <class T>
struct ZeroedAllocator {
  using value_type = T;

  ZeroedAllocator() = default;
  template <class U>
  ZeroedAllocator(const ZeroedAllocator<U>&) {}

  T* allocate(std::size_t count) {
    if (void* memory = std::calloc(count, sizeof(T))) return static_cast<T*>(memory);
    throw std::bad_alloc();
  }
  void deallocate(T* memory, std::size_t) noexcept { std::free(memory); }
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
