#pragma once

#include <array>
#include <stdexcept>

#include "ocdl/sweep/blocks.hpp"

/// What is minimised: functions of the trajectory of each sample. The sweeps know a cost by what it writes.
namespace ocdl {

/// How a cost uses the outputs W y[N] + mu.
enum class OutputUse {
  none,
  write_cotangents,
  read_and_write_cotangents,
};

/// What a cost takes part in.
struct CostNeeds {
  OutputUse outputs = OutputUse::none;
  bool reads_states = false;           ///< states before the last one, which are kept for it
  bool adds_state_cotangents = false;  ///< by `add_state_cotangent`
  bool concerns_stages = false;        ///< by `add_layer` and `add_stage_cotangent`
  bool adds_control_gradient = false;  ///< by `add_control_gradient`
  Index scratch_size = 0;              ///< numbers for each tile
};

/// A block as a cost sees it. Planes of states have rows of the inputs behind those of the state, which count
/// nothing. Planes are those of the block, of which each thread of a team reads and writes
/// its slice; `scratch` and `values` begin with the first tile of the block.
template <class T>
struct CostBlock {
  const Network& net;
  Controls<const T> u;
  const Block& block;
  const ThreadSlice<T>& thread;
  const Trajectory<T>&
      trajectory;              ///< without derivatives it holds all states only for a cost that reads them
  Plane<const T> outputs;      ///< where the cost reads them
  Plane<T> output_cotangents;  ///< to be written whole; null where no derivatives are wanted
  Wide<T>* values;             ///< of each tile, to be added to
  T* scratch;

  /// The numbers of this thread's samples among all rows.
  Range rows() const { return thread.samples_from(block.first); }
  /// The number of samples in tile t; the other lanes are padding, which counts nothing.
  Index samples_in(Index t) const {
    return std::clamp(block.samples - t * tile_width<T>, Index(0), tile_width<T>);
  }
};

/// A function of the trajectories, summed over the samples. Several threads call it at once, each for its
/// slice.
template <class T>
class Cost {
 public:
  virtual ~Cost() = default;

  virtual CostNeeds needs() const = 0;

  /// Adds what depends on the stages of layer j to the values, in the forward sweep.
  virtual void add_layer(const CostBlock<T>&, Index /*j*/, const Stages<T>&) const {}
  /// After the forward sweep: adds to the values and, where derivatives are wanted, writes the cotangents of
  /// the outputs.
  virtual void evaluate(const CostBlock<T>&) const {}
  /// Adds dC/dy[j] to p, this thread's slice; j = N, ..., 0 in the backward sweep.
  virtual void add_state_cotangent(const CostBlock<T>&, Index /*j*/, const Plane<T>& /*p*/) const {}
  /// Adds dC/dk_i / h_j to g, this thread's sum.
  virtual void add_stage_cotangent(const CostBlock<T>&, Index /*j*/, Index /*i*/, const Stages<T>&,
                                   LinearCombination<T>& /*g*/) const {}
  /// Adds what does not come by way of cotangents to the gradient of the block, by the whole team after the
  /// backward sweep. <g_i, k_i> with the sum g_i of above has been added to dJ/dh_j.
  virtual void add_control_gradient(const CostBlock<T>&, const Controls<T>& /*gradient*/) const {}
};

/// The costs of one evaluation, added in their order.
template <class T>
class CostList {
 public:
  static constexpr std::size_t capacity = 4;

  /// Null pointers are left out.
  CostList(std::initializer_list<const Cost<T>*> costs) {
    for (const Cost<T>* cost : costs) {
      if (!cost) continue;
      if (count_ == capacity) throw std::length_error("more costs than a list holds");
      costs_[count_++] = cost;
      const CostNeeds needs = cost->needs();
      needs_.outputs = std::max(needs_.outputs, needs.outputs);
      needs_.reads_states |= needs.reads_states;
      needs_.adds_state_cotangents |= needs.adds_state_cotangents;
      needs_.concerns_stages |= needs.concerns_stages;
      needs_.adds_control_gradient |= needs.adds_control_gradient;
      needs_.scratch_size += whole_packs<T>(needs.scratch_size);
      output_costs_ += needs.outputs != OutputUse::none;
      if (needs.reads_states) kept_per_sample_ += needs.scratch_size / tile_width<T>;
    }
  }

  bool empty() const { return count_ == 0; }
  auto begin() const { return costs_.begin(); }
  auto end() const { return costs_.begin() + count_; }
  /// What any of them needs, and the sum of their scratch memory.
  const CostNeeds& needs() const { return needs_; }
  /// How many write cotangents of the outputs.
  int output_costs() const { return output_costs_; }
  /// Numbers of a sample that are kept beside its states.
  Index kept_per_sample() const { return kept_per_sample_; }

 private:
  std::array<const Cost<T>*, capacity> costs_{};
  std::size_t count_ = 0;
  CostNeeds needs_;
  int output_costs_ = 0;
  Index kept_per_sample_ = 0;
};

/// The costs of one block, as one thread evaluates them.
template <class T>
class BlockCosts {
 public:
  /// `block`: with the scratch memory of the first cost, `tiles`: of the longest block. `more_cotangents`: a
  /// plane for those of a second cost of the outputs.
  BlockCosts(const CostList<T>& costs, const CostBlock<T>& block, Index tiles,
             const Plane<T>& more_cotangents)
      : costs_(costs), block_(block), tiles_(tiles), more_cotangents_(more_cotangents) {
    if (!costs.empty()) std::fill_n(block.values + block.thread.first, block.thread.tiles, Wide<T>{});
  }

  bool concern_stages() const { return costs_.needs().concerns_stages; }

  void add_layer(Index j, const Stages<T>& stages) const {
    if (concern_stages())
      for_each([&](const Cost<T>& cost, const CostBlock<T>& at) { cost.add_layer(at, j, stages); });
  }
  void evaluate() const {
    bool is_first = true;
    for_each([&](const Cost<T>& cost, CostBlock<T> at) {
      if (is_first || cost.needs().outputs == OutputUse::none) {
        cost.evaluate(at);
        is_first &= cost.needs().outputs == OutputUse::none;
        return;
      }
      const Plane<T> sum = at.output_cotangents.slice(at.thread), more = more_cotangents_.slice(at.thread);
      if (sum) at.output_cotangents = more_cotangents_;
      cost.evaluate(at);
      for (Index t = 0; sum && t < sum.tiles(); ++t) sum.tile(t) += more.tile(t);
    });
  }
  void add_state_cotangents(Index j, const Plane<T>& p) const {
    if (costs_.needs().adds_state_cotangents)
      for_each([&](const Cost<T>& cost, const CostBlock<T>& at) { cost.add_state_cotangent(at, j, p); });
  }
  void add_stage_cotangents(Index j, Index i, const Stages<T>& stages, LinearCombination<T>& g) const {
    for_each(
        [&](const Cost<T>& cost, const CostBlock<T>& at) { cost.add_stage_cotangent(at, j, i, stages, g); });
  }
  void add_control_gradient(const Controls<T>& gradient) const {
    if (!gradient || !costs_.needs().adds_control_gradient) return;
    block_.thread.team.barrier();
    for_each([&](const Cost<T>& cost, const CostBlock<T>& at) { cost.add_control_gradient(at, gradient); });
  }

 private:
  const CostList<T>& costs_;
  CostBlock<T> block_;
  Index tiles_;
  Plane<T> more_cotangents_;

  template <class F>
  void for_each(const F& f) const {
    CostBlock<T> at = block_;
    for (const Cost<T>* cost : costs_) {
      f(*cost, at);
      at.scratch += tiles_ * whole_packs<T>(cost->needs().scratch_size);
    }
  }
};

}  // namespace ocdl
