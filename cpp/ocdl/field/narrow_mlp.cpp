#include "ocdl/field/narrow_mlp.hpp"

namespace ocdl {

namespace {

/// Hidden units between two passes over them: they stay in the first cache.
constexpr Index chunk_units = 64;

/// Bytes of the sums over samples that a backward pass adds to.
constexpr Index cached_sums = 16 * 1024;

/// Packs of samples that a kernel takes at a time: what it adds up stays in registers.
template <int D>
constexpr int kernel_packs = D <= (vector_bytes == 64 ? 4 : 2) ? 2 : 1;

/// f<dim>() for a dimension that is known when the program runs.
template <class F>
void with_dim(Index dim, const F& f) {
  static_assert(max_narrow_dim == 8);
  const auto call = [&]<int... D>(std::integer_sequence<int, D...>) {
    ((dim == D + 1 ? f.template operator()<D + 1>() : void()), ...);
  };
  call(std::make_integer_sequence<int, 8>());
}

/// f<P>(lane) for the packs of a tile that hold some of its samples: P packs from `lane` on.
template <int D, class T, class F>
void for_kernel_packs(Index samples, const F& f) {
  if (kernel_packs<D> == 2 && samples > lanes<T>) return f.template operator()<kernel_packs<D>>(0);
  for (Index lane = 0; lane < std::min(samples, tile_width<T>); lane += lanes<T>)
    f.template operator()<1>(lane);
}

/// The parts of the controls at one stage. V, A and c have a row for each component of f, which is less than
/// the kernels' dimension where there are inputs: these take the last row again, for numbers that do not
/// count.
template <class E>
struct Weights {
  E *K, *b, *V, *A, *c;
  Index width, last_row;

  Weights(const StageControls<E>& u, Index width_, Index dim)
      : K(u.parts[0]),
        b(u.parts[1]),
        V(u.parts[2]),
        A(u.parts[3]),
        c(u.parts[4]),
        width(width_),
        last_row(dim - 1) {}

  Index row(int i) const { return std::min<Index>(i, last_row); }
};

/// Entry by entry: of an array that is copied as a whole, each entry would be stored when it changes.
template <int D, int P, class T>
[[gnu::always_inline]] inline void copy_rows(const Pack<T> (&from)[D][P], Pack<T> (&to)[D][P]) {
#pragma GCC unroll 8
  for (int i = 0; i < D; ++i)
#pragma GCC unroll 2
    for (int p = 0; p < P; ++p) to[i][p] = from[i][p];
}

// Out of line: compiled once, not in every kernel.
template <class T>
[[gnu::noinline]] void activate_units(Activation activation, T* z, T* slope, Index size) {
  activate(activation, z, slope, size);
}
template <class T>
[[gnu::noinline]] void write_unit_slopes(Activation activation, const T* s, T* slope, Index size) {
  write_slope<T>(activation, s, nullptr, slope, size);
}

/// The units [first, last): z = K y + b, `stride` numbers apart.
template <int D, int P, class T>
[[gnu::noinline]] void write_arguments(const Weights<const T>& u, const Pack<T> (&y)[D][P], Index first,
                                       Index last, T* z, Index stride) {
  for (Index r = first; r < last; ++r, z += stride) {
    Pack<T> sum[P];
#pragma GCC unroll 2
    for (int p = 0; p < P; ++p) sum[p] = broadcast<T>(u.b[r]);
#pragma GCC unroll 8
    for (int l = 0; l < D; ++l) {
      const Pack<T> weight = broadcast<T>(u.K[r * D + l]);
#pragma GCC unroll 2
      for (int p = 0; p < P; ++p) multiply_add(sum[p], weight, y[l][p]);
    }
#pragma GCC unroll 2
    for (int p = 0; p < P; ++p) store<T>(z + p * lanes<T>, sum[p]);
  }
}

/// k += V s over the units [first, last).
template <int D, int P, class T>
[[gnu::noinline]] void add_units(const Weights<const T>& u, const T* s, Index stride, Index first, Index last,
                                 Pack<T> (&total)[D][P]) {
  Pack<T> k[D][P];
  copy_rows<D, P, T>(total, k);
  for (Index r = first; r < last; ++r, s += stride)
#pragma GCC unroll 2
    for (int p = 0; p < P; ++p) {
      const Pack<T> unit = load(s + p * lanes<T>);
#pragma GCC unroll 8
      for (int i = 0; i < D; ++i) multiply_add(k[i][p], broadcast<T>(u.V[u.row(i) * u.width + r]), unit);
    }
  copy_rows<D, P, T>(k, total);
}

/// total += A y, or A^T y.
template <bool IsTransposed, int D, int P, class T>
[[gnu::always_inline]] inline void add_linear(const Weights<const T>& u, const Pack<T> (&y)[D][P],
                                              Pack<T> (&total)[D][P]) {
#pragma GCC unroll 8
  for (int i = 0; i < D; ++i)
#pragma GCC unroll 8
    for (int l = 0; l < D; ++l) {
      const Pack<T> weight = broadcast<T>(IsTransposed ? u.A[u.row(l) * D + i] : u.A[u.row(i) * D + l]);
#pragma GCC unroll 2
      for (int p = 0; p < P; ++p) multiply_add(total[i][p], weight, y[l][p]);
    }
}

template <int D, int P, class T>
void load_rows(const T* from, Pack<T> (&rows)[D][P]) {
#pragma GCC unroll 8
  for (int i = 0; i < D; ++i)
#pragma GCC unroll 2
    for (int p = 0; p < P; ++p) rows[i][p] = load(from + i * tile_width<T> + p * lanes<T>);
}
template <int D, int P, class T>
void store_rows(const Pack<T> (&rows)[D][P], T* to) {
#pragma GCC unroll 8
  for (int i = 0; i < D; ++i)
#pragma GCC unroll 2
    for (int p = 0; p < P; ++p) store<T>(to + i * tile_width<T> + p * lanes<T>, rows[i][p]);
}
template <int D, int P, class T>
void read_rows(const typename LinearCombination<T>::Reader& reader, Index n, Pack<T> (&rows)[D][P]) {
#pragma GCC unroll 2
  for (int p = 0; p < P; ++p) {
    Pack<T> of_pack[D];
    reader.template read<false>(n + p * lanes<T>, tile_width<T>, of_pack);
    for (int i = 0; i < D; ++i) rows[i][p] = of_pack[i];
  }
}

/// Some packs of a tile, whose planes begin at these places.
template <int D, int P, class T>
void evaluate_packs(const Weights<const T>& u, Activation activation, const T* y_rows, T* hidden, T* slope,
                    T* value) {
  constexpr Index width = tile_width<T>;
  // A whole tile is activated in place; of half a tile the units stand apart.
  constexpr bool is_in_place = P * lanes<T> == width;
  constexpr Index stride = P * lanes<T>;
  T apart[is_in_place ? 1 : chunk_units * stride], slopes_apart[is_in_place ? 1 : chunk_units * stride];
  Pack<T> y[D][P], k[D][P];
  load_rows(y_rows, y);
  for (int i = 0; i < D; ++i)
    for (int p = 0; p < P; ++p) k[i][p] = broadcast<T>(u.c[u.row(i)]);
  add_linear<false, D, P, T>(u, y, k);
  for (Index first = 0; first < u.width; first += chunk_units) {
    const Index last = std::min(first + chunk_units, u.width), units = last - first;
    T* const s = hidden + first * width;
    T* const ds = slope ? slope + first * width : nullptr;
    T* const z = is_in_place ? s : apart;
    T* const dz = is_in_place || !slope ? ds : slopes_apart;
    write_arguments<D, P, T>(u, y, first, last, z, stride);
    activate_units(activation, z, dz, units * stride);
    add_units<D, P, T>(u, z, stride, first, last, k);
    if constexpr (!is_in_place)
      for (Index r = 0; r < units; ++r) {
        store<T>(s + r * width, load(z + r * stride));
        if (slope) store<T>(ds + r * width, load(dz + r * stride));
      }
  }
  store_rows(k, value);
}

/// Some packs of a tile backward: q = V^T g, delta = sigma' q, eta += K^T delta, and the sums of the units
/// [first, last), dK = delta y^T in a row, db = delta and dV = g s^T in a column.
template <int D, int P, bool IsTanh, class T>
[[gnu::noinline]] void pull_back_units(const Weights<const T>& u, const Pack<T> (&y)[D][P],
                                       const Pack<T> (&g)[D][P], const T* s, const T* slope, Index first,
                                       Index last, Pack<T> (&total)[D][P], T* sums) {
  constexpr Index width = tile_width<T>;
  Pack<T> eta[D][P];
  copy_rows<D, P, T>(total, eta);
  for (Index r = first; r < last; ++r, s += width, slope += width, sums += (2 * D + 1) * lanes<T>) {
    Pack<T> unit[P], delta[P];
#pragma GCC unroll 8
    for (int i = 0; i < D; ++i) {
      const Pack<T> weight = broadcast<T>(u.V[u.row(i) * u.width + r]);
#pragma GCC unroll 2
      for (int p = 0; p < P; ++p) delta[p] = i == 0 ? weight * g[0][p] : fma(weight, g[i][p], delta[p]);
    }
#pragma GCC unroll 2
    for (int p = 0; p < P; ++p) {
      unit[p] = load(s + p * lanes<T>);
      if constexpr (IsTanh)
        delta[p] *= fnma(unit[p], unit[p], broadcast<T>(T(1)));
      else
        delta[p] *= load(slope + p * lanes<T>);
    }
#pragma GCC unroll 8
    for (int l = 0; l < D; ++l) {
      const Pack<T> weight = broadcast<T>(u.K[r * D + l]);
#pragma GCC unroll 2
      for (int p = 0; p < P; ++p) multiply_add(eta[l][p], weight, delta[p]);
    }
    const auto add = [&](int n, const Pack<T>(&a)[P], const Pack<T>(&b)[P]) {
      Pack<T> sum = load(sums + n * lanes<T>);
#pragma GCC unroll 2
      for (int p = 0; p < P; ++p) multiply_add(sum, a[p], b[p]);
      store<T>(sums + n * lanes<T>, sum);
    };
#pragma GCC unroll 8
    for (int l = 0; l < D; ++l) add(l, delta, y[l]);
    store<T>(sums + D * lanes<T>, load(sums + D * lanes<T>) + (P == 2 ? delta[0] + delta[P - 1] : delta[0]));
#pragma GCC unroll 8
    for (int i = 0; i < D; ++i) add(D + 1 + i, g[i], unit);
  }
  copy_rows<D, P, T>(eta, total);
}

/// The sums of the linear part: dA = g y^T in rows, then dc = g.
template <int D, int P, class T>
void add_linear_sums(const Pack<T> (&y)[D][P], const Pack<T> (&g)[D][P], T* sums) {
  for (int i = 0; i < D; ++i)
    for (int l = 0; l < D; ++l, sums += lanes<T>) {
      Pack<T> sum = load(sums);
      for (int p = 0; p < P; ++p) multiply_add(sum, g[i][p], y[l][p]);
      store<T>(sums, sum);
    }
  for (int i = 0; i < D; ++i, sums += lanes<T>) {
    Pack<T> sum = load(sums);
    for (int p = 0; p < P; ++p) sum += g[i][p];
    store<T>(sums, sum);
  }
}

/// Sets the half of the last tile of a plane that holds no sample to 0.
template <class T>
void clear_padding(const Plane<T>& plane, Index samples) {
  const Index last = plane.tiles() - 1, in_tile = samples - last * tile_width<T>;
  if (!plane || in_tile > lanes<T>) return;
  for (Index i = 0; i < plane.rows(); ++i) store<T>(plane.lane(last, i, lanes<T>), Pack<T>{});
}

}  // namespace

template <class T>
void NarrowMlp<T>::evaluate(const StageControls<const T>& u, const Plane<const T>& y,
                            const StagePlanes<T>& at, Index samples) const {
  const Weights<const T> weights(u, width, dim);
  const Plane<T> s = at.hidden[0], slope = slope_needs_storage(activation) ? at.hidden[1] : Plane<T>();
  with_dim(rows, [&]<int D>() {
    for (Index t = 0; t < y.tiles(); ++t)
      for_kernel_packs<D, T>(samples - t * tile_width<T>, [&]<int P>(Index lane) {
        evaluate_packs<D, P, T>(weights, activation, y.lane(t, 0, lane), s.lane(t, 0, lane),
                                slope ? slope.lane(t, 0, lane) : nullptr, at.value.lane(t, 0, lane));
      });
  });
  detail::clear_rows(at.value, dim);
  for (const Plane<T>& plane : {s, slope, at.value}) clear_padding(plane, samples);
}

template <class T>
void NarrowMlp<T>::vjp(const StageControls<const T>& u, T h, const LinearCombination<T>& y,
                       const StagePlanes<T>& at, const LinearCombination<T>& g, const Plane<T>& eta,
                       Index samples, T* sums) const {
  const Weights<const T> weights(u, width, dim);
  const bool is_tanh = activation == Activation::tanh, has_slope = slope_needs_storage(activation);
  const typename LinearCombination<T>::Reader y_reader(y), g_reader(g);
  const Pack<T> step = broadcast<T>(h);
  with_dim(rows, [&]<int D>() {
    constexpr Index tile = tile_width<T>, unit_sums = (2 * D + 1) * lanes<T>;
    // The sums of the units between two passes over the samples stay in the first cache.
    constexpr Index units = std::clamp<Index>(cached_sums / (unit_sums * Index(sizeof(T))), 1, chunk_units);
    T slopes[chunk_units * tile];
    for (Index first = 0; first < width; first += units) {
      const Index last = std::min(first + units, width);
      for (Index t = 0; t < eta.tiles(); ++t)
        for_kernel_packs<D, T>(samples - t * tile, [&]<int P>(Index lane) {
          Pack<T> state[D][P], cotangent[D][P], result[D][P] = {};
          read_rows<D, P, T>(y_reader, t * D * tile + lane, state);
          read_rows<D, P, T>(g_reader, t * D * tile + lane, cotangent);
          for (int i = 0; i < D; ++i)
            for (Pack<T>& pack : cotangent[i]) pack *= i < dim ? step : Pack<T>{};
          if (first == 0) {
            add_linear<true, D, P, T>(weights, cotangent, result);
            add_linear_sums<D, P, T>(state, cotangent, sums + width * unit_sums);
          } else {
            load_rows<D, P, T>(eta.lane(t, 0, lane), result);
          }
          const T* const s = at.hidden[0].lane(t, first, 0);
          const T* slope = has_slope ? at.hidden[1].lane(t, first, 0) : slopes;
          if (!is_tanh && !has_slope) write_unit_slopes(activation, s, slopes, (last - first) * tile);
          const auto kernel = is_tanh ? pull_back_units<D, P, true, T> : pull_back_units<D, P, false, T>;
          kernel(weights, state, cotangent, s + lane, slope + lane, first, last, result,
                 sums + first * unit_sums);
          store_rows<D, P, T>(result, eta.lane(t, 0, lane));
        });
    }
  });
  clear_padding(eta, samples);
}

template <class T>
void NarrowMlp<T>::add_lanes(T* sums, bool accumulate, const StageControls<T>& du) const {
  const Index count = sums_size() / lanes<T>;
  for (Index n = 0; n < count; n += lanes<T>) {
    Pack<T> packs[lanes<T>] = {};
    for (Index i = 0; i < std::min<Index>(lanes<T>, count - n); ++i)
      packs[i] = load(sums + (n + i) * lanes<T>);
    sum_lanes_of_each<T>(packs, lanes<T>, sums + n);
  }
  const Weights<T> to(du, width, dim);
  const T* from = sums;
  const auto put = [&](T& entry) {
    entry = accumulate ? entry + *from : *from;
    ++from;
  };
  for (Index r = 0; r < width; ++r) {
    for (Index l = 0; l < rows; ++l) put(to.K[r * rows + l]);
    put(to.b[r]);
    for (Index i = 0; i < dim; ++i) put(to.V[i * width + r]);
    from += rows - dim;
  }
  for (Index n = 0; n < dim * rows; ++n) put(to.A[n]);
  from += (rows - dim) * rows;
  for (Index i = 0; i < dim; ++i) put(to.c[i]);
}

template struct NarrowMlp<double>;
template struct NarrowMlp<float>;

}  // namespace ocdl
