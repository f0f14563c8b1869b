#pragma once

#include "ocdl/sweep/adjoint.hpp"
#include "ocdl/sweep/flow.hpp"

namespace ocdl {

/// What stands behind the flow: a function of the outputs, of which a pull-back needs the slopes. It is asked
/// between the two sweeps of a block, by several threads at once, each for its tiles.
template <class T>
class Seed {
 public:
  virtual ~Seed() = default;

  /// Whether the outputs are looked at.
  virtual bool needs_outputs() const = 0;
  /// Numbers of scratch memory for a tile.
  virtual Index scratch_size() const = 0;
  /// The function's values on some tiles of the block, and unless null its slopes (outputs x width each), 0
  /// in the padding. Pointers are to the first of these tiles.
  virtual void evaluate(const Block& block, Range tiles, const T* outputs, T* slopes, T* scratch,
                        Wide<T>* values) const = 0;
};

/// Slopes that are known beforehand, rows of (samples, outputs).
template <class T>
class GivenSlopes : public Seed<T> {
 public:
  GivenSlopes(const T* rows, Index outputs) : rows_(rows), outputs_(outputs) {}

  bool needs_outputs() const override { return false; }
  Index scratch_size() const override { return 0; }
  void evaluate(const Block& block, Range tiles, const T*, T* slopes, T*, Wide<T>* values) const override {
    constexpr Index width = tile_width<T>;
    std::fill_n(values, tiles.end - tiles.begin, Wide<T>{});
    for (Index s = tiles.begin * width; s < tiles.end * width; ++s) {
      const bool padding = s >= block.samples;
      const T* row = rows_ + (block.first + s) * outputs_;
      T* lane = slopes + (s / width - tiles.begin) * outputs_ * width + s % width;
      for (Index o = 0; o < outputs_; ++o) lane[o * width] = padding ? T(0) : row[o];
    }
  }

 private:
  const T* rows_;
  Index outputs_;
};

/// Slopes of the states, rows of (samples, dim) for the last one or of (N+1, samples, dim) for all; none:
/// null.
template <class T>
struct StateSlopes {
  const T* rows = nullptr;
  bool every_layer = false;

  /// Those of state j, or null.
  const T* of(Index j, const Network& net, Index samples) const {
    if (!rows || (!every_layer && j < net.layers)) return nullptr;
    return rows + (every_layer ? j : 0) * samples * net.dim;
  }
};

/// Where the derivatives go; null pointers are not wanted.
template <class T>
struct Derivatives {
  T* controls = nullptr;  ///< by the controls
  T* inputs = nullptr;    ///< by X: p[0], (samples, features)
  T* costates = nullptr;  ///< p, (N+1, samples, dim)
  /// Whether all controls and the derivatives by them are known to be finite; value_and_derivatives says it.
  bool* shown_finite = nullptr;

  bool any() const { return controls || inputs || costates; }
};

/// Begins a sum of so many samples, which may be a part of all, and unless null of their gradients.
template <class T>
void start_sum(const Network& net, const Shards& shards, Index samples, T* gradient,
               Workspace<T>& workspace) {
  workspace.tree.start(shards, shards.count(samples), net.control_size(), gradient);
}

/// Whether sweeps can show that all controls and the gradient are finite: where states are wide and samples
/// few, to look through them would take a while.
inline bool may_show_finite(const Network& net, const BlockPlan& plan, Index samples) {
  return plan.by_team && block_count(plan, samples) == 1 && !traits_of(net.field_kind).is_mapped &&
         net.uses_all_controls();
}

/// The derivatives of seed(outputs) + sum <slopes, states> over all samples, and the seed's value: forward
/// and backward, block by block. Without a seed the outputs do not count; without derivatives there is no way
/// back.
template <class T>
class PullBack {
 public:
  PullBack(const Network& net, const T* controls, const Passive<T>* X, Index samples, const Seed<T>* seed,
           const StateSlopes<T>& state_slopes, const Derivatives<T>& derivatives, Workspace<T>& workspace)
      : PullBack(net, controls, X, samples, seed, state_slopes, derivatives, workspace,
                 plan_blocks<T>(net, samples)) {}

  /// With a plan of one's own: the result's bits depend on the cut into blocks and shards, not on the
  /// storage.
  PullBack(const Network& net, const T* controls, const Passive<T>* X, Index samples, const Seed<T>* seed,
           const StateSlopes<T>& state_slopes, const Derivatives<T>& derivatives, Workspace<T>& workspace,
           const BlockPlan& plan)
      : net_(net),
        swept_(field_controls(net, controls, 0, workspace)),
        u_(net.split(swept_)),
        X_(X),
        samples_(samples),
        seed_(seed),
        state_slopes_(state_slopes),
        out_(derivatives),
        workspace_(workspace),
        plan_(plan),
        integrator_(net, swept_),
        costate_rows_(derivatives.costates, net, samples) {
    if (!out_.any()) plan_.storage = Storage::states_only;
    shape_ = net.trajectory_shape(plan_.storage);
    shape_.layers = stored_layers();
  }

  // Defined outside the class, so that only pull_back.cpp compiles what they call: it is most of the core.

  /// The seed's value.
  Wide<T> run();

  /// The same of a piece of the samples, after those before it: what is summed stays in the workspace's tree,
  /// and the field's map is not pulled back yet.
  void add_up();

  /// Whether the sweeps have shown that all controls and the gradient are finite; if not, somebody has to
  /// look. Where a control that multiplies states is not finite, p[0] is not.
  bool has_shown_finite() const {
    if (!out_.controls || !may_show_finite(net_, plan_, samples_) || !seen_finite_) return false;
    return std::all_of(net_.parts.begin(), net_.parts.end(), [&](const Part& part) {
      const auto [begin, end] = part.place;
      return part.multiplies_states ||
             (first_non_finite(swept_, begin, end) < 0 && first_non_finite(out_.controls, begin, end) < 0);
    });
  }

 private:
  const Network& net_;
  const T* swept_;  ///< the controls as the sweeps take them
  Controls<const T> u_;
  const Passive<T>* X_;
  Index samples_;
  const Seed<T>* seed_;
  StateSlopes<T> state_slopes_;
  Derivatives<T> out_;
  Workspace<T>& workspace_;
  BlockPlan plan_;
  TrajectoryShape shape_;
  Integrator<T> integrator_;
  StateRows<T> costate_rows_;
  bool should_continue_ = true;           ///< what the first thread of a team tells the others
  std::atomic<bool> seen_finite_ = true;  ///< p[0], and the gradient by what multiplies states

  /// A worker's memory: the same pieces for every block.
  struct Memory {
    T *trajectory, *seed_scratch, *tile_values, *gradient;
    Plane<T> stage, costate, outputs, output_slopes;
    AdjointScratch<T> adjoint;
  };

  /// Without derivatives a state is overwritten by the next one.
  Index stored_layers() const { return out_.any() ? net_.layers : 0; }
  Memory allocate(Arena<T>&& arena, Index tiles, int rank) const { return allocate(arena, tiles, rank); }
  /// Views of a block of so many tiles, for thread `rank` of its team.
  Memory allocate(Arena<T>& arena, Index tiles, int rank) const {
    constexpr Index wide = sizeof(Wide<T>) / sizeof(T);
    const Index most_tiles = plan_.samples / tile_width<T>;
    const Index if_backward = out_.any() ? 1 : 0;
    const Field<T> field = net_.field<T>();
    const Index hidden_rows = field.hidden().rows;
    const auto planes = [&](Index count, Index rows) {
      const Index stride = plane_stride<T>(rows * plan_.samples);
      return Planes<T>(Plane<T>(arena.allocate(count * stride), rows, tiles), stride);
    };
    Memory m;
    m.trajectory = arena.allocate(Trajectory<T>::size(shape_, plan_.samples));
    m.stage = planes(1, net_.dim)[0];
    m.outputs = planes(1, net_.outputs)[0];
    m.output_slopes = planes(1, net_.outputs)[0];
    m.seed_scratch = arena.allocate(seed_ ? most_tiles * seed_->scratch_size() : 0);
    m.tile_values = arena.allocate(most_tiles * wide);
    m.costate = planes(if_backward, net_.dim)[0];
    m.adjoint.stage_cotangents = planes(if_backward * (net_.largest_group ? net_.stages : 1), net_.dim);
    m.adjoint.cotangents.hidden = planes(if_backward, hidden_rows)[0];
    m.adjoint.cotangents.rotated = planes(if_backward && field.needs_rotated_cotangent(), net_.dim)[0];
    m.adjoint.state = m.stage;
    m.adjoint.eta = planes(if_backward * net_.stages, net_.dim);
    m.adjoint.panels =
        arena.allocate(if_backward * panel::transposed_size<T>(std::max(net_.dim, hidden_rows), most_tiles));
    m.adjoint.tile_dots = arena.allocate(if_backward * most_tiles * lanes<T>);
    // A team adds to the shard's sum itself; a thread with a block of its own hands in one.
    m.gradient = plan_.by_team ? workspace_.tree.open().vector
                               : arena.allocate(out_.controls ? net_.control_size() : 0);
    if (!out_.controls) m.gradient = nullptr;
    const Index equations = StageEquations<T>::scratch_size(net_);
    arena.allocate(rank * (panel::scratch_size<T>() + equations));
    m.adjoint.product = arena.allocate(panel::scratch_size<T>());
    m.adjoint.equations = arena.allocate(equations);
    return m;
  }

  StageScratch<T> stage_scratch(const Memory& memory) const {
    return {memory.stage, memory.adjoint.product, memory.adjoint.equations, memory.adjoint.stop_token};
  }

  Index memory_size(int threads) const {
    Arena<T> counter(nullptr);
    allocate(counter, 0, plan_.by_team ? threads - 1 : 0);
    return counter.used();
  }

  void process(const Block& block, const Team& team, int worker) {
    const ThreadSlice<T> own = ThreadSlice<T>::of(team, block.samples);
    Memory memory = allocate(Arena<T>(workspace_.memory(worker)), own.block_tiles, team.rank());
    const Trajectory<T> trajectory(memory.trajectory, shape_, plan_.samples, own.block_tiles);
    const bool is_caller = worker == 0 && team.rank() == 0;
    memory.adjoint.stop_token = {workspace_.stop_source, is_caller};
    if (!run_forward(block, own, trajectory, memory, is_caller)) return;
    if (seed_) run_seed(block, own, trajectory.state(stored_layers()), memory);
    if (out_.any()) run_backward(block, own, trajectory, memory, is_caller);
  }

  /// Whether it came to its end.
  bool run_forward(const Block& block, const ThreadSlice<T>& own, const Trajectory<T>& trajectory,
                   const Memory& memory, bool is_caller) {
    const Range rows = own.samples_from(block.first);
    rows_to_plane<T>(X_ + rows.begin * net_.features, rows.size(), net_.features,
                     trajectory.state(0).slice(own));
    for (Index j = 0; j < net_.layers; ++j) {
      if (!own.team.agree(should_continue(workspace_, net_, own, is_caller), should_continue_)) return false;
      integrator_.step(j, trajectory.state(std::min(j, stored_layers())), trajectory.stages(j),
                       trajectory.state(std::min(j + 1, stored_layers())), stage_scratch(memory), own);
    }
    return true;
  }

  void run_seed(const Block& block, const ThreadSlice<T>& own, const Plane<const T>& final_state,
                const Memory& memory) const {
    if (seed_->needs_outputs()) read_out<T>(u_, final_state, memory.outputs, own);
    seed_->evaluate(block, own.range(), memory.outputs.slice(own).data(),
                    out_.any() ? memory.output_slopes.slice(own).data() : nullptr,
                    memory.seed_scratch + own.first * seed_->scratch_size(),
                    reinterpret_cast<Wide<T>*>(memory.tile_values) + own.first);
  }

  void run_backward(const Block& block, const ThreadSlice<T>& own, const Trajectory<T>& trajectory,
                    const Memory& memory, bool is_caller) {
    const Range rows = own.samples_from(block.first);
    const bool accumulate = plan_.by_team && block.number > 0;
    const Plane<T> p = memory.costate, own_p = p.slice(own);
    pull_back_outputs(own, trajectory.state(net_.layers), memory, accumulate);
    add_state_slopes(net_.layers, own_p, rows);
    costate_rows_.write(net_.layers, own_p, rows);

    const Adjoint<T> adjoint(net_, swept_, memory.gradient, accumulate);
    bool finite = true;
    for (Index j = net_.layers - 1; j >= 0; --j) {
      if (!own.team.agree(should_continue(workspace_, net_, own, is_caller), should_continue_)) return;
      const Plane<const T> y = trajectory.state(j);
      const Stages<T> stages = trajectory.stages(j);
      if (trajectory.storage() == Storage::states_only)
        integrator_.evaluate_stages(j, y, stages, stage_scratch(memory), own);
      finite &= adjoint.step(j, y, stages, p, memory.adjoint, own);
      add_state_slopes(j, own_p, rows);
      costate_rows_.write(j, own_p, rows);
    }
    if (plan_.by_team && (!finite || first_non_finite(own_p.data(), 0, own_p.size()) >= 0))
      seen_finite_ = false;
    if (out_.inputs)
      plane_to_rows<T>(own_p, rows.size(), net_.features, out_.inputs + rows.begin * net_.features);
  }

  /// p = W^T slopes of the outputs, and the gradient of the readout; 0 where the outputs do not count.
  void pull_back_outputs(const ThreadSlice<T>& own, const Plane<const T>& final_state, const Memory& memory,
                         bool accumulate) const {
    const Controls<T> du = net_.split(memory.gradient);
    if (!seed_) {
      const Plane<T> own_p = memory.costate.slice(own);
      std::fill_n(own_p.data(), own_p.size(), T(0));
      if (du && !accumulate && own.team.rank() == 0) {
        du.W().setZero();
        du.mu().setZero();
      }
      return;
    }
    if (du)
      outer_product(memory.output_slopes, final_state, own, accumulate, du.W(), du.mu().data(),
                    memory.adjoint.panels);
    transposed_product(u_.W(), memory.output_slopes, memory.costate, own, memory.adjoint.product);
  }

  /// Adds the slopes of state j, if there are any, to its costate; the padding keeps its 0.
  void add_state_slopes(Index j, const Plane<T>& p, const Range& rows) const {
    const T* row = state_slopes_.of(j, net_, samples_);
    if (!row) return;
    row += rows.begin * net_.dim;
    constexpr Index width = tile_width<T>;
    for (Index s = 0; s < rows.size(); ++s, row += net_.dim)
      p.tile(s / width).col(s % width) += Eigen::Map<const Eigen::Array<T, Eigen::Dynamic, 1>>(row, net_.dim);
  }

  /// Adds a block to its shard, and a complete shard to those before it.
  void merge(const Block& block, const Team& team, int worker) {
    if (team.rank() == 0) add_to_shard(block, allocate(Arena<T>(workspace_.memory(worker)), 0, 0));
    if (block.ends_shard) workspace_.tree.close(team);
  }

  void add_to_shard(const Block& block, const Memory& memory) {
    auto& shard = workspace_.tree.open();
    const Wide<T>* values = reinterpret_cast<const Wide<T>*>(memory.tile_values);
    for (Index t = 0; seed_ && t < tiles_for<T>(block.samples); ++t) shard.value += values[t];
    if (!out_.controls || plan_.by_team) return;
    for (Index n = 0; n < net_.control_size(); ++n)
      shard.vector[n] = block.number == 0 ? memory.gradient[n] : shard.vector[n] + memory.gradient[n];
  }
};

template <class T>
Wide<T> PullBack<T>::run() {
  start_sum(net_, plan_.shards, samples_, out_.controls, workspace_);
  add_up();
  if (out_.controls) transpose_field_map(net_, out_.controls);
  return workspace_.tree.finished()[0].value;
}

template <class T>
void PullBack<T>::add_up() {
  const double sweeps = (out_.any() ? 2.5 : 1) * (is_dual<T> ? 3 : 1);
  const ThreadChoice choice(sweeps * forward_work(net_, samples_), parallel_parts<T>(net_, plan_, samples_));
  workspace_.reserve(plan_.by_team ? 1 : choice.most(), memory_size(choice.most()));
  for_each_block(
      samples_, plan_, choice.threads(),
      [&](const Block& block, const Team& team, int worker) { process(block, team, worker); },
      [&](const Block& block, const Team& team, int worker) { merge(block, team, worker); });
  if (workspace_.stop_source) workspace_.stop_source->throw_if_stopped();
}

extern template class PullBack<double>;
extern template class PullBack<float>;

}  // namespace ocdl
