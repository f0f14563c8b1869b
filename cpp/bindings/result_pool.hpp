#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <functional>
#include <initializer_list>
#include <memory>
#include <mutex>
#include <numeric>
#include <vector>

#include "bindings/array.hpp"
#include "ocdl/memory.hpp"

namespace ocdl {

/// Memory of large results that their owners have given back, for the next result of the same size: to touch
/// pages that are new to a process can take longer than to compute what is written to them.
class ResultPool {
 public:
  static constexpr std::size_t worthwhile = std::size_t(1) << 22, max_kept = std::size_t(1) << 28;

  static ResultPool& instance() {
    static auto* pool = new ResultPool;  // never destroyed: results may outlive everything else
    return *pool;
  }

  void* take(std::size_t bytes) {
    const std::lock_guard hold(lock_);
    const auto match =
        std::find_if(kept_.begin(), kept_.end(), [&](const Piece& p) { return p.bytes == bytes; });
    if (match == kept_.end()) {
      if (void* memory = std::malloc(bytes)) return memory;
      throw OutOfMemory("a result takes " + in_units(static_cast<double>(bytes)) +
                        ", which the system refuses");
    }
    void* memory = match->memory;
    kept_.erase(match);
    kept_bytes_ -= bytes;
    return memory;
  }

  void give_back(void* memory, std::size_t bytes) {
    const std::lock_guard hold(lock_);
    if (bytes > max_kept) return std::free(memory);
    kept_.push_back({memory, bytes});
    kept_bytes_ += bytes;
    while (kept_bytes_ > max_kept) {  // the oldest first
      std::free(kept_.front().memory);
      kept_bytes_ -= kept_.front().bytes;
      kept_.erase(kept_.begin());
    }
  }

 private:
  struct Piece {
    void* memory;
    std::size_t bytes;
  };
  std::mutex lock_;
  std::vector<Piece> kept_;
  std::size_t kept_bytes_ = 0;
};

/// Memory for a result, from the pool where that is worthwhile.
template <class T>
std::shared_ptr<T> result_memory(Index size) {
  const std::size_t bytes = static_cast<std::size_t>(size) * sizeof(T);
  if (bytes < ResultPool::worthwhile)
    return std::shared_ptr<T>(new T[static_cast<std::size_t>(size)], std::default_delete<T[]>());
  return {static_cast<T*>(ResultPool::instance().take(bytes)),
          [bytes](T* memory) { ResultPool::instance().give_back(memory, bytes); }};
}

/// A new array for a result.
template <class T>
Array<T> result_array(std::initializer_list<Index> shape) {
  const Index size = std::accumulate(shape.begin(), shape.end(), Index(1), std::multiplies<>());
  if (static_cast<std::size_t>(size) * sizeof(T) < ResultPool::worthwhile) return Array<T>(shape);
  auto memory = std::make_unique<std::shared_ptr<T>>(result_memory<T>(size));
  T* numbers = memory->get();
  const pybind11::capsule owner(memory.release(),
                                [](void* held) { delete static_cast<std::shared_ptr<T>*>(held); });
  return Array<T>(shape, numbers, owner);
}

template <class T>
Array<T> result_vector(Index size) {
  return result_array<T>({size});
}

}  // namespace ocdl
