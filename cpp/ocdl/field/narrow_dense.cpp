#include "ocdl/field/narrow_dense.hpp"

namespace ocdl {

namespace {

/// Vector registers of the machine.
#if defined(__AVX512F__) || defined(__aarch64__)
constexpr int registers = 32;
#else
constexpr int registers = 16;
#endif

/// Numbers of a plane that two passes take at a time: they stay in the first cache beside what is made of
/// them.
constexpr Index chunk_size = 512;

/// f<dim>() for a dimension that is known when the program runs.
template <class F>
void with_dim(Index dim, const F& f) {
  static_assert(max_narrow_dim == 8);
  switch (dim) {
    case 1:
      return f.template operator()<1>();
    case 2:
      return f.template operator()<2>();
    case 3:
      return f.template operator()<3>();
    case 4:
      return f.template operator()<4>();
    case 5:
      return f.template operator()<5>();
    case 6:
      return f.template operator()<6>();
    case 7:
      return f.template operator()<7>();
    default:
      return f.template operator()<8>();
  }
}

/// f<yes...>() for answers that are known when the program runs.
template <bool... Known, class F>
void choose(const F& f) {
  f.template operator()<Known...>();
}
template <bool... Known, class F, class... More>
void choose(const F& f, bool answer, More... more) {
  answer ? choose<Known..., true>(f, more...) : choose<Known..., false>(f, more...);
}

/// z = K y + b in some tiles; of tanh the first half, the other part of it at the beginning of `power`.
template <int D, bool Reduce, bool IsPlane, class T>
[[gnu::noinline]] void arguments(const T* K, const T* b, const LinearCombination<T>& state, T* z, T* power,
                                 Index first, Index last) {
  constexpr Index width = tile_width<T>;
  Pack<T> m[D][D], c[D];
  for (int i = 0; i < D; ++i) {
    c[i] = broadcast<T>(b[i]);
    for (int k = 0; k < D; ++k) m[i][k] = broadcast<T>(K[i * D + k]);
  }
  const typename LinearCombination<T>::Reader reader(state);
  const Index begin = first * D * width;
  for (Index t = first; t < last; ++t)
#pragma GCC unroll 2
    for (Index n = t * D * width; n < t * D * width + width; n += lanes<T>) {
      Pack<T> y[D];
      reader.template read<IsPlane>(n, width, y);
#pragma GCC unroll 8
      for (int i = 0; i < D; ++i) {
        Pack<T> sum = c[i];
#pragma GCC unroll 8
        for (int k = 0; k < D; ++k) multiply_add(sum, m[i][k], y[k]);
        if constexpr (Reduce) {
          const ReducedTanh<T> reduced = reduce_tanh<T>(sum);
          store<T>(z + n + i * width, reduced.y);
          store<T>(power + n - begin + i * width, reduced.power);
        } else {
          store<T>(z + n + i * width, sum);
        }
      }
    }
}

/// The second half of tanh, in place; then(n, value) is called with each pack.
template <class T, class Then>
void finish_tanh_of(T* z, const T* power, Index size, Then then) {
  for (Index n = 0; n < size; n += lanes<T>) {
    const Pack<T> value = finish_tanh<T>({load(z + n), load(power + n)});
    store<T>(z + n, value);
    then(n, value);
  }
}

/// What becomes of eta: it is the costate, it is added to the costate, or it is kept as well.
enum class Eta { alone, added, kept };

/// One stage backward, see NarrowDense::vjp: in one pass with the sums in registers, or the costates
/// alone, leaving delta for the sums. No `slope`: that of tanh. Branches that go the same way in all of a
/// plane cost less than the compilation of a kernel for each of them.
template <int D, bool InOnePass, Eta Kind, bool IsOnlyStage, class T>
void costates(const T* K, T h, const LinearCombination<T>& state, const T* k, const T* slope, bool wants_dot,
              const LinearCombination<T>& g, const T* costate_before, T* costate, T* eta,
              typename NarrowDense<T>::Sums& sums, T* delta, Index tiles) {
  constexpr Index width = tile_width<T>;
  Pack<T> m[D][D], dK[D][D], db[D], dot = sums.dot();
  for (int i = 0; i < D; ++i) {
    db[i] = sums.delta()[i];
    for (int l = 0; l < D; ++l) {
      m[i][l] = broadcast<T>(h * K[i * D + l]);
      dK[i][l] = sums.outer()[i * D + l];
    }
  }
  const typename LinearCombination<T>::Reader state_reader(state), g_reader(g);
  for (Index t = 0; t < tiles; ++t)
#pragma GCC unroll 2
    for (Index n = t * D * width; n < t * D * width + width; n += lanes<T>) {
      // Everything is read before anything is written: the compiler has to assume that planes overlap.
      Pack<T> w[D], y[D], p[D];
      g_reader.template read<IsOnlyStage>(n, width, w);
      state_reader.template read<IsOnlyStage>(n, width, y);
      if constexpr (Kind != Eta::alone)
#pragma GCC unroll 8
        for (int l = 0; l < D; ++l) p[l] = load(costate_before + n + l * width);
      if (wants_dot)
#pragma GCC unroll 8
        for (int i = 0; i < D; ++i) multiply_add(dot, w[i], load(k + n + i * width));
      if (slope)
#pragma GCC unroll 8
        for (int i = 0; i < D; ++i) w[i] *= load(slope + n + i * width);
      else
#pragma GCC unroll 8
        for (int i = 0; i < D; ++i) {
          const Pack<T> value = load(k + n + i * width);
          w[i] *= fnma(value, value, broadcast<T>(T(1)));
        }
      if constexpr (!InOnePass)
#pragma GCC unroll 8
        for (int i = 0; i < D; ++i) store<T>(delta + n + i * width, w[i]);
#pragma GCC unroll 8
      for (int l = 0; l < D; ++l) {
        Pack<T> sum = Kind == Eta::added ? p[l] : m[0][l] * w[0];
        if constexpr (Kind == Eta::added) multiply_add(sum, m[0][l], w[0]);
#pragma GCC unroll 8
        for (int i = 1; i < D; ++i) multiply_add(sum, m[i][l], w[i]);
        if constexpr (Kind == Eta::kept) {
          store<T>(eta + n + l * width, sum);
          sum += p[l];
        }
        store<T>(costate + n + l * width, sum);
      }
      if constexpr (InOnePass)
#pragma GCC unroll 8
        for (int i = 0; i < D; ++i) {
          db[i] += w[i];
#pragma GCC unroll 8
          for (int l = 0; l < D; ++l) multiply_add(dK[i][l], w[i], y[l]);
        }
    }
  sums.dot() = dot;
  if constexpr (InOnePass)
    for (int i = 0; i < D; ++i) {
      sums.delta()[i] = db[i];
      for (int l = 0; l < D; ++l) sums.outer()[i * D + l] = dK[i][l];
    }
}

/// dK += delta y^T and db += delta 1, as many rows at a time as there are registers for.
template <int D, class T>
void outer_sums(const T* delta, const T* y, typename NarrowDense<T>::Sums& sums, Index tiles) {
  constexpr Index width = tile_width<T>;
  constexpr int rows = std::max(1, (registers - 4) / (D + 2));
#pragma GCC unroll 8
  for (int first = 0; first < D; first += rows) {
    const int count = std::min(rows, D - first);
    Pack<T> dK[rows][D] = {}, db[rows] = {};
    for (Index t = 0; t < tiles; ++t)
#pragma GCC unroll 2
      for (Index n = t * D * width; n < t * D * width + width; n += lanes<T>)
#pragma GCC unroll 8
        for (int i = 0; i < rows; ++i) {
          if (i >= count) break;
          const Pack<T> w = load(delta + n + (first + i) * width);
          db[i] += w;
#pragma GCC unroll 8
          for (int l = 0; l < D; ++l) multiply_add(dK[i][l], w, load(y + n + l * width));
        }
    for (int i = 0; i < count; ++i) {
      sums.delta()[first + i] += db[i];
      for (int l = 0; l < D; ++l) sums.outer()[(first + i) * D + l] += dK[i][l];
    }
  }
}

}  // namespace

template <class T>
void NarrowDense<T>::evaluate(const StageControls<const T>& u, const LinearCombination<T>& state,
                              const StagePlanes<T>& at, const Plane<T>& power,
                              const Epilogue<T>& epilogue) const {
  const bool is_tanh = activation == Activation::tanh;
  const Index tiles = at.value.tiles(), tile = at.value.tile_size(),
              chunk = std::max<Index>(1, chunk_size / tile);
  T *const k = at.value.data(), *const slope = at.hidden[0].data();
  for (Index first = 0; first < tiles; first += chunk) {
    const Index last = std::min(first + chunk, tiles), begin = first * tile, end = last * tile;
    with_dim(dim, [&]<int D>() {
      const auto kernel = [&]<bool Reduce, bool IsPlane>() {
        arguments<D, Reduce, IsPlane>(u.parts[0], u.parts[1], state, k, power.data(), first, last);
      };
      choose(kernel, is_tanh, state.is_plane());
    });
    T *z = k + begin, *dz = slope ? slope + begin : nullptr;
    epilogue.run(begin, [&](auto then) {
      if (is_tanh)
        finish_tanh_of(z, power.data(), end - begin, then);
      else
        activate(activation, z, dz, end - begin, then);
    });
  }
}

template <class T>
void NarrowDense<T>::vjp(const StageControls<const T>& u, T h, LinearCombination<T>& state,
                         const StagePlanes<T>& at, const LinearCombination<T>& g,
                         const Plane<const T>& costate_before, const Plane<T>& costate, const Plane<T>& eta,
                         bool wants_dot, Sums& sums, const Plane<T>& work) const {
  const T *const k = at.value.data(), *slope = at.hidden[0].data();
  if (activation != Activation::tanh && !slope_needs_storage(activation)) {
    write_slope(activation, k, slope, work.data(), work.size());
    slope = work.data();
  }
  const Index tiles = at.value.tiles();
  with_dim(dim, [&]<int D>() {
    constexpr bool in_one_pass = D * D + D <= registers - 10;
    const auto run = [&]<Eta Kind, bool IsOnlyStage>() {
      costates<D, in_one_pass, Kind, IsOnlyStage>(u.parts[0], h, state, k, slope, wants_dot, g,
                                                  costate_before.data(), costate.data(), eta.data(), sums,
                                                  work.data(), tiles);
    };
    if (!costate_before)
      run.template operator()<Eta::alone, true>();
    else if (eta)
      run.template operator()<Eta::kept, false>();
    else if (g.is_plane() && state.is_plane())
      run.template operator()<Eta::added, true>();
    else
      run.template operator()<Eta::added, false>();
    if (!in_one_pass) outer_sums<D>(work.data(), state.result().data(), sums, tiles);
  });
}

template struct NarrowDense<double>;
template struct NarrowDense<float>;

}  // namespace ocdl
