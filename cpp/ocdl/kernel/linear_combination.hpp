#pragma once

#include <algorithm>
#include <array>

#include "ocdl/kernel/plane.hpp"
#include "ocdl/parallel.hpp"

/// Linear combinations and inner products of planes: they see only a run of numbers, whole packs of them.
namespace ocdl {

/// base + sum of coefficient * plane, gathered term by term and written to `out` in one pass; no base: 0.
/// Terms with coefficient 0 do not count. All planes have the same tiles; `out` may be the base.
template <class T>
class LinearCombination {
  struct Term {
    T coefficient;
    const T* plane;
  };

 public:
  /// So many terms are gathered before they are written.
  static constexpr int capacity = 16;

  /// Without `out` the sum can be read, not written.
  explicit LinearCombination(const Plane<const T>& base, const Plane<T>& out = {}) : base_(base), out_(out) {
    assert(!base || !out || base.size() == out.size());
  }
  void add(T coefficient, const Plane<const T>& plane) {
    assert(!base_ || plane.size() == base_.size());
    if (coefficient == T(0)) return;
    if (!base_ && count_ == 0 && coefficient == T(1)) {
      base_ = plane;
      return;
    }
    if (count_ == capacity) write();
    terms_[static_cast<std::size_t>(count_++)] = {coefficient, plane.data()};
  }

  /// Writes the sum to `out`.
  void write() {
    switch (count_) {
      case 0:
        write_terms<0>();
        break;
      case 1:
        write_terms<1>();
        break;
      case 2:
        write_terms<2>();
        break;
      case 3:
        write_terms<3>();
        break;
      case 4:
        write_terms<4>();
        break;
      default:
        write_terms<-1>();
    }
    base_ = out_;
    count_ = 0;
  }

  /// Of the base, or of `out` where there is none.
  Index rows() const { return base_ ? base_.rows() : out_.rows(); }

  /// Whether the sum is its base alone.
  bool is_plane() const { return count_ == 0 && base_; }

  /// Reads the sum pack by pack, for kernels that go on with it instead of writing it. It refers to the terms
  /// of the combination.
  class Reader {
   public:
    explicit Reader(const LinearCombination& sum)
        : base_(sum.base_.data()), first_(sum.terms_.data()), last_(first_ + sum.count_) {}

    /// Packs n, n + stride, ... of the sum. `IsPlane`: it is known to be its base alone.
    template <bool IsPlane, int count>
    [[gnu::always_inline]] void read(Index n, Index stride, Pack<T> (&sum)[count]) const {
#pragma GCC unroll 8
      for (int i = 0; i < count; ++i) sum[i] = IsPlane || base_ ? load(base_ + n + i * stride) : Pack<T>{};
      if constexpr (!IsPlane)
#pragma GCC unroll 1
        for (const Term* term = first_; term < last_; ++term) {
          const Pack<T> coefficient = broadcast<T>(term->coefficient);
          const T* plane = term->plane + n;
#pragma GCC unroll 8
          for (int i = 0; i < count; ++i) multiply_add(sum[i], coefficient, load(plane + i * stride));
        }
    }

   private:
    const T* base_;
    const typename LinearCombination::Term *first_, *last_;
  };

  /// The sum as a plane: its base where there is nothing else, or `out`.
  Plane<const T> result() {
    if (!is_plane()) write();
    return base_;
  }

 private:
  Plane<const T> base_;
  Plane<T> out_;
  std::array<Term, capacity> terms_;
  int count_ = 0;

  /// Each number is one chain of multiply-adds in the order of the terms, wherever it is interrupted.
  template <int Known>
  void write_terms() const {
    assert(out_);
    const int count = Known < 0 ? count_ : Known;
    // Copies that a store to `out` cannot change, so that they stay in registers.
    Term terms[Known < 0 ? capacity : std::max(Known, 1)];
    std::copy_n(terms_.begin(), count, terms);
    const T* const base = base_.data();
    T* const out = out_.data();
    for (Index n = 0, size = out_.size(); n < size; n += lanes<T>) {
      Pack<T> sum = base ? load(base + n) : Pack<T>{};
      for (int l = 0; l < count; ++l)
        multiply_add(sum, broadcast<T>(terms[l].coefficient), load(terms[l].plane + n));
      store<T>(out + n, sum);
    }
  }
};

/// A sum whose last term is added while it is computed: out = before + weight * plane, pack by pack, or
/// nothing where the weight is 0.
template <class T>
struct Epilogue {
  const LinearCombination<T>* before = nullptr;
  T weight = T(0);
  Plane<T> out;

  /// Calls f(then): then(n, value) is to be called with each pack of the plane, n counted from `begin`.
  template <class F>
  void run(Index begin, const F& f) const {
    if (weight == T(0))
      f([](Index, const Pack<T>&) {});
    else if (before->is_plane())
      f(then<true>(begin));
    else
      f(then<false>(begin));
  }

 private:
  template <bool IsPlane>
  auto then(Index begin) const {
    // Captured by value: what stands in memory would be read again after every store.
    return [reader = typename LinearCombination<T>::Reader(*before), scale = broadcast<T>(weight), begin,
            to = out.data() + begin](Index n, const Pack<T>& value) {
      Pack<T> sum[1];
      reader.template read<IsPlane>(begin + n, 0, sum);
      multiply_add(sum[0], scale, value);
      store<T>(to + n, sum[0]);
    };
  }
};

template <class T>
Pack<T> dot_lanes(const T* a, const T* b, Index size) {
  Pack<T> even{}, odd{};
  for (Index n = 0; n < size; n += tile_width<T>) {
    multiply_add(even, load(a + n), load(b + n));
    multiply_add(odd, load(a + n + lanes<T>), load(b + n + lanes<T>));
  }
  return even + odd;
}

template <class T>
bool is_finite(T value) {
  return value * T(0) == T(0);
}

/// Index of the first number of [begin, end) that is not finite, or -1; at the speed of memory where all are.
template <class T>
Index first_non_finite(const T* values, Index begin, Index end) {
  Pack<T> zero{};
  Index n = begin;
  for (; n + lanes<T> <= end; n += lanes<T>) multiply_add(zero, load(values + n), broadcast<T>(T(0)));
  const bool whole_packs_finite = sum_lanes<T>(zero) == T(0);
  for (n = whole_packs_finite ? n : begin; n < end; ++n)
    if (!is_finite(values[n])) return n;
  return -1;
}

/// The same of all numbers, shared among threads where there are many: one core does not use all of memory's
/// speed.
template <class T>
Index first_non_finite(const T* values, Index size) {
  constexpr Index worth_a_thread = Index(1) << 18;
  const Index threads = std::min<Index>(size / worth_a_thread, ThreadLimit::sensible());
  if (threads < 2) return first_non_finite(values, 0, size);
  std::atomic<Index> first{size};
  parallel(static_cast<int>(threads), [&](const Team& team) {
    const Range mine = team.range_of(size);
    const Index index = first_non_finite(values, mine.begin, mine.end);
    for (Index known = first; index >= 0 && index < known && !first.compare_exchange_weak(known, index);) {
    }
  });
  return first < size ? first.load() : -1;
}

}  // namespace ocdl
