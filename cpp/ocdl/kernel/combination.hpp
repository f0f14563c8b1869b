#pragma once

#include <array>
#include <cassert>

#include "ocdl/kernel/tile.hpp"

/// Linear combinations and inner products of planes: they see only a run of numbers, whole packs of them.
namespace ocdl {

/// A sum of planes with coefficients, of which only the non-zero ones are kept.
template <class T>
class Combination {
 public:
  static constexpr int capacity = 32;

  void add(T coefficient, const T* plane) {
    if (coefficient == T(0)) return;
    assert(count_ < capacity);
    terms_[static_cast<std::size_t>(count_++)] = {coefficient, plane};
  }
  bool empty() const { return count_ == 0; }

  /// The sum of the terms: a term itself where it stands alone with coefficient 1, else written to `scratch`.
  const T* sum(T* scratch, Index size) const {
    if (count_ == 1 && terms_[0].coefficient == T(1)) return terms_[0].plane;
    write(nullptr, scratch, size);
    return scratch;
  }

  /// out = base + sum of the terms; no base: 0. `out` may be the base.
  void write(const T* base, T* out, Index size) const {
    switch (count_) {
      case 0:
        return write_terms<0>(base, out, size);
      case 1:
        return write_terms<1>(base, out, size);
      case 2:
        return write_terms<2>(base, out, size);
      case 3:
        return write_terms<3>(base, out, size);
      case 4:
        return write_terms<4>(base, out, size);
      default:
        return write_terms<-1>(base, out, size);
    }
  }

 private:
  struct Term {
    T coefficient;
    const T* plane;
  };
  std::array<Term, capacity> terms_;
  int count_ = 0;

  /// Each number is one chain of multiply-adds in the order of the terms, however many are known at compile
  /// time.
  template <int Known>
  void write_terms(const T* base, T* out, Index size) const {
    const int count = Known < 0 ? count_ : Known;
    for (Index n = 0; n < size; n += lanes<T>) {
      Pack<T> sum = base ? load(base + n) : Pack<T>{};
      for (int l = 0; l < count; ++l) {
        const Term& term = terms_[static_cast<std::size_t>(l)];
        sum += broadcast<T>(term.coefficient) * load(term.plane + n);
      }
      store<T>(out + n, sum);
    }
  }
};

template <class T>
Pack<T> dot_lanes(const T* a, const T* b, Index size) {
  Pack<T> even{}, odd{};
  for (Index n = 0; n < size; n += tile_width<T>) {
    even += load(a + n) * load(b + n);
    odd += load(a + n + lanes<T>) * load(b + n + lanes<T>);
  }
  return even + odd;
}

/// Whether every number is finite, at the speed of memory.
template <class T>
Index first_non_finite(const T* values, Index size) {
  Pack<T> zero{};
  Index n = 0;
  for (; n + lanes<T> <= size; n += lanes<T>) zero += load(values + n) * broadcast<T>(T(0));
  const bool whole_packs_finite = sum_lanes<T>(zero) == T(0);
  for (n = whole_packs_finite ? n : 0; n < size; ++n)
    if (!(values[n] * T(0) == T(0))) return n;
  return -1;
}

}  // namespace ocdl
