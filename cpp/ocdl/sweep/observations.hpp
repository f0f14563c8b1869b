#pragma once

#include <limits>

#include "ocdl/sweep/cost.hpp"
#include "ocdl/sweep/interpolation.hpp"

/// Outputs W y(t) + mu at times of observation, and costs of these: between layers the outputs are those of
/// interpolated states, which is the same as interpolated outputs of the layers.
namespace ocdl {

/// The precision of a number, and of what a compound number is made of.
template <class S>
inline constexpr double precision_of = std::numeric_limits<decltype(value_of(S()))>::epsilon();

/// When samples are observed: so many times each, at the same times or at their own ones.
template <class S>
struct ObservationTimes {
  Index count = 0;
  const double* shared = nullptr;  ///< of all samples
  const S* per_sample = nullptr;   ///< of the first sample; the others follow `stride` numbers apart
  Index stride = 0;

  double at(Index sample, Index n) const {
    return shared ? shared[n] : static_cast<double>(value_of(per_sample[sample * stride + n]));
  }
};

/// Planes of the outputs of one time, for a cost's own use.
inline constexpr Index observation_planes = 4;

/// Numbers of a sample that costs of observations keep beside its trajectory.
inline Index observation_size(const Network& net) {
  return (2 * (net.layers + 1) + observation_planes) * net.outputs;
}

/// The cost of outputs at times of observation: what costs of this kind have in common. Its scratch memory
/// holds planes of the outputs of all layers, and of the cotangents of these.
template <class T, class S>
class ObservationCost : public Cost<T> {
 public:
  ObservationCost(const Network& net, const T* controls, const ObservationTimes<S>& times)
      : net_(net),
        times_(times),
        layers_(net, net.split(controls), std::max(precision_of<T>, precision_of<S>)) {
    is_used_.assign(static_cast<std::size_t>(net.layers) + 1, !times.shared);
    for (Index n = 0; times.shared && n < times.count; ++n) {
      const Stencil& stencil = shared_.emplace_back(layers_.at(times.shared[n]));
      std::fill_n(is_used_.begin() + stencil.first, stencil.count, true);
    }
  }

  CostNeeds needs() const override {
    return {.reads_states = true,
            .adds_state_cotangents = true,
            .adds_control_gradient = true,
            .scratch_size = observation_size(net_) * tile_width<T>};
  }

  void add_state_cotangent(const CostBlock<T>& at, Index j, const Plane<T>& p) const override {
    if (!is_used(j)) return;
    const Plane<T> cotangents = layer_cotangents(at, j).slice(at.thread);
    const MatrixView<const T> W = at.u.W();
    for (Index t = 0; t < p.tiles(); ++t)
      for (Index i = 0; i < W.cols(); ++i)
        for (Index lane = 0; lane < tile_width<T>; lane += lanes<T>) {
          Pack<T> sum = load(p.lane(t, i, lane));
          for (Index o = 0; o < W.rows(); ++o)
            multiply_add(sum, broadcast<T>(W(o, i)), load(cotangents.lane(t, o, lane)));
          store<T>(p.lane(t, i, lane), sum);
        }
  }

  /// dW = sum_j S_j y[j]^T and dmu = sum_j S_j 1 with the cotangents S_j of the outputs of layer j.
  void add_control_gradient(const CostBlock<T>& at, const Controls<T>& gradient) const override {
    const Range columns = at.thread.team.range_of(net_.dim);
    for (Index o = 0; o < net_.outputs; o += outputs_at_once) {
      const Index count = std::min(outputs_at_once, net_.outputs - o);
      for (Index i = columns.begin; i < columns.end; ++i)
        add_products(at, o, count, i,
                     [&](Index n) -> T& { return gradient.W().data()[(o + n) * net_.dim + i]; });
      if (at.thread.team.rank() == 0)
        add_products(at, o, count, -1, [&](Index n) -> T& { return gradient.mu().data()[o + n]; });
    }
  }

 protected:
  using Stencils = std::array<Stencil, std::size_t(tile_width<T>)>;
  const Network& net() const { return net_; }
  Index times() const { return times_.count; }

  /// Computes the outputs of the layers, and lets their cotangents be 0. By the whole team.
  void start(const CostBlock<T>& at) const {
    for (Index j = 0; j <= net_.layers; ++j) {
      if (!is_used(j)) continue;
      affine(at.u.W(), at.u.mu().data(), at.trajectory.state(j), layer_outputs(at, j), at.thread);
      const Plane<T> cotangents = layer_cotangents(at, j).slice(at.thread);
      std::fill_n(cotangents.data(), cotangents.size(), T(0));
    }
  }

  /// The stencils of the samples of tile t for time number n; of the padding those of the last sample.
  Stencils stencils(const CostBlock<T>& at, Index t, Index n) const {
    Stencils result;
    if (times_.shared) {
      result.fill(shared_[static_cast<std::size_t>(n)]);
      return result;
    }
    const Index first = at.block.first + t * tile_width<T>, count = at.samples_in(t);
    for (Index i = 0; i < count; ++i)
      result[static_cast<std::size_t>(i)] = layers_.at(times_.at(first + i, n));
    std::fill(result.begin() + count, result.end(), result[static_cast<std::size_t>(count - 1)]);
    return result;
  }

  /// The outputs z of tile t at the times of the stencils.
  void interpolate(const CostBlock<T>& at, Index t, const Stencils& stencils, T* z) const {
    std::fill_n(z, net_.outputs * tile_width<T>, T(0));
    for_each_term(stencils, [&](Index s, Index j, T weight) {
      const T* of_layer = layer_outputs(at, j).lane(t, 0, s);
      for (Index o = 0; o < net_.outputs; ++o)
        z[o * tile_width<T> + s] = fma(weight, of_layer[o * tile_width<T>], z[o * tile_width<T> + s]);
    });
  }

  /// Adds the cotangents dz of these outputs to those of the layers.
  void add_cotangents(const CostBlock<T>& at, Index t, const Stencils& stencils, const T* dz) const {
    for_each_term(stencils, [&](Index s, Index j, T weight) {
      T* of_layer = layer_cotangents(at, j).lane(t, 0, s);
      for (Index o = 0; o < net_.outputs; ++o)
        of_layer[o * tile_width<T>] = fma(weight, dz[o * tile_width<T> + s], of_layer[o * tile_width<T>]);
    });
  }

  /// A plane of tile t for a cost's own use, of the outputs of one time.
  T* row_plane(const CostBlock<T>& at, Index t, Index number) const {
    const Index size = net_.outputs * tile_width<T>;
    return at.scratch + 2 * (net_.layers + 1) * size * at.thread.block_tiles +
           (t * observation_planes + number) * size;
  }

 private:
  static constexpr Index outputs_at_once = 4;

  const Network& net_;
  ObservationTimes<S> times_;
  LayerTimes layers_;
  std::vector<Stencil> shared_;
  std::vector<char> is_used_;  ///< whether a stencil may use layer j

  bool is_used(Index j) const { return is_used_[static_cast<std::size_t>(j)]; }

  Plane<T> layer_outputs(const CostBlock<T>& at, Index j) const {
    const Index tiles = at.thread.block_tiles;
    return {at.scratch + j * net_.outputs * tile_width<T> * tiles, net_.outputs, tiles};
  }
  Plane<T> layer_cotangents(const CostBlock<T>& at, Index j) const {
    return layer_outputs(at, net_.layers + 1 + j);
  }

  /// f(lane, layer, weight) for what the outputs of each lane are made of.
  template <class F>
  static void for_each_term(const Stencils& stencils, const F& f) {
    for (Index s = 0; s < tile_width<T>; ++s) {
      const Stencil& stencil = stencils[static_cast<std::size_t>(s)];
      for (Index n = 0; n < stencil.count; ++n)
        f(s, stencil.first + n,
          T(static_cast<decltype(value_of(T()))>(stencil.weights[static_cast<std::size_t>(n)])));
    }
  }

  /// Adds the sum of the products of the cotangents of some outputs with component i of the states, or with 1
  /// if i is -1, to entry(n) for output number o + n.
  template <class Entry>
  void add_products(const CostBlock<T>& at, Index o, Index count, Index i, const Entry& entry) const {
    Pack<T> sums[outputs_at_once] = {};
    for (Index j = 0; j <= net_.layers; ++j) {
      if (!is_used(j)) continue;
      const Plane<T> y = at.trajectory.state(j), cotangents = layer_cotangents(at, j);
      for (Index t = 0; t < y.tiles(); ++t)
        for (Index lane = 0; lane < tile_width<T>; lane += lanes<T>) {
          const Pack<T> factor = i < 0 ? broadcast<T>(T(1)) : load(y.lane(t, i, lane));
          for (Index n = 0; n < count; ++n)
            multiply_add(sums[n], load(cotangents.lane(t, o + n, lane)), factor);
        }
    }
    for (Index n = 0; n < count; ++n) entry(n) += sum_lanes<T>(sums[n]);
  }
};

/// Writes the outputs at the times, (samples, times, outputs).
template <class T>
class ObservedOutputs : public ObservationCost<T, T> {
 public:
  ObservedOutputs(const Network& net, const T* controls, const ObservationTimes<T>& times, T* rows)
      : ObservationCost<T, T>(net, controls, times), rows_(rows) {}

  void evaluate(const CostBlock<T>& at) const override {
    this->start(at);
    const Index q = this->net().outputs;
    const Range tiles = at.thread.range();
    for (Index t = tiles.begin; t < tiles.end; ++t)
      for (Index n = 0; n < this->times(); ++n) {
        T* z = this->row_plane(at, t, 0);
        this->interpolate(at, t, this->stencils(at, t, n), z);
        for (Index s = 0; s < at.samples_in(t); ++s) {
          const Index sample = at.block.first + t * tile_width<T> + s;
          for (Index o = 0; o < q; ++o)
            rows_[(sample * this->times() + n) * q + o] = z[o * tile_width<T> + s];
        }
      }
  }

 private:
  T* rows_;
};

/// Given cotangents of the outputs at the times, (samples, times, outputs); the value is 0.
template <class T>
class ObservedCotangents : public ObservationCost<T, T> {
 public:
  ObservedCotangents(const Network& net, const T* controls, const ObservationTimes<T>& times, const T* rows)
      : ObservationCost<T, T>(net, controls, times), rows_(rows) {}

  void evaluate(const CostBlock<T>& at) const override {
    this->start(at);
    const Index q = this->net().outputs;
    const Range tiles = at.thread.range();
    for (Index t = tiles.begin; t < tiles.end; ++t)
      for (Index n = 0; n < this->times(); ++n) {
        T* dz = this->row_plane(at, t, 0);
        std::fill_n(dz, q * tile_width<T>, T(0));
        for (Index s = 0; s < at.samples_in(t); ++s) {
          const Index sample = at.block.first + t * tile_width<T> + s;
          for (Index o = 0; o < q; ++o)
            dz[o * tile_width<T> + s] = rows_[(sample * this->times() + n) * q + o];
        }
        this->add_cotangents(at, t, this->stencils(at, t, n), dz);
      }
  }

 private:
  const T* rows_;
};

}  // namespace ocdl
