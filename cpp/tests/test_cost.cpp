#include <boost/test/unit_test.hpp>

#include "tests/random_problem.hpp"
#include "tests/repetitions.hpp"

using namespace ocdl;
using namespace ocdl::testing;

namespace {

using Complex = std::complex<double>;
constexpr double tiny = 1e-40;

/// sum_j h_j sum_i b_i |k_i|^2 of every sample, without a conjugate.
template <class T>
class RunningCost : public Cost<T> {
 public:
  explicit RunningCost(const Network& net)
      : layers_(net.layers), plane_size_(net.rows() * tile_width<T>), learns_steps_(net.learns_steps) {}

  CostNeeds needs() const override {
    return {.concerns_stages = true, .adds_control_gradient = true, .scratch_size = plane_size_ + layers_};
  }

  void add_layer(const CostBlock<T>& at, Index j, const Stages<T>& stages) const override {
    for (Index t = at.thread.range().begin; t < at.thread.range().end; ++t) {
      T sum{};
      for (Index i = 0; i < at.net.stages; ++i)
        if (at.net.weight(i) != 0)
          sum += T(at.net.weight(i)) * stages.value(i).tile(t).leftCols(at.samples_in(t)).square().sum();
      sum_of(at, t, j) = sum;
      at.values[t] += Wide<T>(at.u.h(j) * sum);
    }
  }
  void add_stage_cotangent(const CostBlock<T>& at, Index, Index i, const Stages<T>& stages,
                           LinearCombination<T>& g) const override {
    if (at.net.weight(i) == 0) return;
    const Plane<T> s(at.scratch, at.net.rows(), at.thread.block_tiles);
    for (Index t = at.thread.range().begin; t < at.thread.range().end; ++t) {
      s.tile(t) = T(2 * at.net.weight(i)) * stages.value(i).tile(t);
      s.tile(t).rightCols(tile_width<T> - at.samples_in(t)).setZero();
    }
    g.add(T(1), s.slice(at.thread));
  }
  /// dC/dh_j = sum <g_i - s_i, k_i> + sum b_i |k_i|^2 with s_i = 2 b_i k_i, the part of g_i that comes from
  /// here.
  void add_control_gradient(const CostBlock<T>& at, const Controls<T>& gradient) const override {
    if (at.thread.team.rank() != 0 || !learns_steps_) return;
    for (Index j = 0; j < layers_; ++j)
      for (Index t = 0; t < at.thread.block_tiles; ++t) gradient.h(j) -= sum_of(at, t, j);
  }

 private:
  Index layers_, plane_size_;
  bool learns_steps_;

  T& sum_of(const CostBlock<T>& at, Index t, Index j) const {
    return at.scratch[at.thread.block_tiles * plane_size_ + t * layers_ + j];
  }
};

/// 1/2 |y[3]|^2 + sum_r y[7]_r^3 of every sample.
template <class T>
class InnerLayersCost : public Cost<T> {
 public:
  CostNeeds needs() const override { return {.reads_states = true, .adds_state_cotangents = true}; }

  void evaluate(const CostBlock<T>& at) const override {
    for (Index t = at.thread.range().begin; t < at.thread.range().end; ++t) {
      const Index dim = at.net.dim, count = at.samples_in(t);
      at.values[t] +=
          Wide<T>(T(0.5) * at.trajectory.state(3).tile(t).topLeftCorner(dim, count).square().sum());
      at.values[t] += Wide<T>(at.trajectory.state(7).tile(t).topLeftCorner(dim, count).cube().sum());
    }
  }
  void add_state_cotangent(const CostBlock<T>& at, Index j, const Plane<T>& p) const override {
    if (j != 3 && j != 7) return;
    const Plane<T> y = at.trajectory.state(j).slice(at.thread);
    for (Index t = 0; t < p.tiles(); ++t) {
      const Index dim = at.net.dim, count = at.samples_in(at.thread.first + t);
      if (j == 3)
        p.tile(t).topLeftCorner(dim, count) += y.tile(t).topLeftCorner(dim, count);
      else
        p.tile(t).topLeftCorner(dim, count) += T(3) * y.tile(t).topLeftCorner(dim, count).square();
    }
  }
};

/// Which costs are added up.
struct Choice {
  bool loss, running, inner, second_loss;
};

template <class T>
Wide<T> evaluate(const Problem<T>& p, const Choice& choice, const Derivatives<T>& out,
                 const BlockPlan* plan = nullptr) {
  const Data<T> data = p.data();
  const LossCost<T, T> loss(p.net.outputs, data, p.objective.loss, 1);
  const RunningCost<T> running(p.net);
  const InnerLayersCost<T> inner;
  const CostList<T> costs{choice.loss ? &loss : nullptr, choice.running ? &running : nullptr,
                          choice.inner ? &inner : nullptr, choice.second_loss ? &loss : nullptr};
  Workspace<T> workspace;
  const BlockPlan usual = plan_blocks<T>(p.net, p.samples(), costs.kept_per_sample());
  return AdjointSweep<T>(p.net, p.controls.data(), {p.net, p.X.data()}, p.samples(), costs, out, workspace,
                         plan ? *plan : usual)
      .run();
}

Result<double> differentiate(const Problem<double>& p, const Choice& choice,
                             const BlockPlan* plan = nullptr) {
  Result<double> r{0, std::vector<double>(p.controls.size(), 7), std::vector<double>(p.X.size(), 7)};
  r.value = evaluate<double>(p, choice, {.controls = r.controls.data(), .rows = r.rows.data()}, plan);
  return r;
}

/// The largest error along a random direction of each part of the controls and of the data, relative to the
/// sizes of its terms.
double complex_step_error(const Problem<double>& p, const Choice& choice, Draw& draw,
                          const BlockPlan* plan = nullptr) {
  const Result<double> exact = differentiate(p, choice, plan);
  Problem<Complex> q = p.as<Complex>();
  double largest =
      std::abs(evaluate<Complex>(q, choice, {}).real() - exact.value) / (1 + std::abs(exact.value));
  const auto check = [&](std::vector<Complex>& where, const std::vector<double>& derivative, Range range) {
    double product = 0, size = 0;
    for (Index n = range.begin; n < range.end; ++n) {
      const auto at = static_cast<std::size_t>(n);
      const double w = draw.normal();
      where[at] += Complex(0, tiny * w);
      product += derivative[at] * w;
      size += std::abs(derivative[at] * w);
    }
    const double step = evaluate<Complex>(q, choice, {}).imag() / tiny;
    for (Index n = range.begin; n < range.end; ++n) where[static_cast<std::size_t>(n)].imag(0);
    const double error = std::abs(product - step);
    if (!(error <= largest * size)) largest = error / size;
  };
  for (const Part& part : p.net.parts)
    if (part.range.size() > 0 && (part.role != Role::steps || p.net.learns_steps))
      check(q.controls, exact.controls, part.range);
  check(q.X, exact.rows, {0, static_cast<Index>(p.X.size())});
  return largest;
}

constexpr Choice choices[] = {{true, true, false, false}, {false, true, false, false},
                              {true, false, true, false}, {false, false, true, false},
                              {true, true, true, true},   {true, false, false, true}};

Choice fitting(Choice choice, const Network& net) {
  choice.running &= net.residual;
  choice.loss |= !choice.running && !choice.inner;
  return choice;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(cost)

BOOST_AUTO_TEST_CASE(gradients_of_running_costs_and_costs_of_inner_layers_are_the_complex_step) {
  Draw draw(41);
  const std::vector<std::string> methods = names();
  const auto networks = static_cast<std::size_t>(repetitions(330));
  for (std::size_t n = 0; n < networks; ++n) {
    const std::string& tableau = methods[n % methods.size()];
    const bool is_explicit = named(tableau).is_explicit();
    const Network net = draw.network(tableau, static_cast<Activation>(n % activations.size()),
                                     draw.whole(7, 12), draw.whole(1, is_explicit ? 12 : 4));
    const Choice choice = fitting(choices[n / methods.size() % std::size(choices)], net);
    const double error = complex_step_error(draw.problem(net, draw.whole(1, 40)), choice, draw);
    BOOST_TEST(error <= (is_explicit ? 1e-12 : 1e-11),
               "network " << n << ": " << tableau << ", dimension " << net.dim << ": " << error);
  }
}

BOOST_AUTO_TEST_CASE(wide_states_several_blocks_and_teams) {
  Draw draw(42);
  ThreadChoice::insist(true);
  ThreadLimit::set(3);
  for (const Index dim : {2, 17, 97})
    for (const Choice& choice : choices) {
      const Network net = draw.network("kutta3", Activation::tanh, 7, dim);
      const Problem<double> p = draw.problem(net, 150);
      BlockPlan plan = plan_blocks<double>(net, p.samples());
      plan.samples = std::min(plan.samples, 4 * tile_width<double>);
      BOOST_TEST(block_count(plan, p.samples()) > 2);
      BOOST_TEST(complex_step_error(p, fitting(choice, net), draw, &plan) <= 1e-12, "dimension " << dim);
    }
  ThreadChoice::insist(false);
  ThreadLimit::set(2);
}

BOOST_AUTO_TEST_CASE(bits_do_not_depend_on_storage_or_threads_and_values_not_on_derivatives) {
  Draw draw(43);
  ThreadChoice::insist(true);
  for (const Index dim : {1, 2, 5, 100})
    for (const Choice& choice : choices) {
      const Network net = draw.network("kutta4", Activation::sin, 8, dim);
      const Problem<double> p = draw.problem(net, 700);
      BlockPlan plan = plan_blocks<double>(net, p.samples());
      ThreadLimit::set(1);
      const Result<double> serial = differentiate(p, fitting(choice, net), &plan);
      for (const Storage storage : {Storage::all_stages, Storage::states_only})
        for (const int threads : {1, 2, 3}) {
          plan.storage = storage;
          ThreadLimit::set(threads);
          BOOST_TEST((differentiate(p, fitting(choice, net), &plan) == serial), "dimension " << dim);
          BOOST_TEST(evaluate<double>(p, fitting(choice, net), {}, &plan) == serial.value);
        }
    }
  ThreadChoice::insist(false);
  ThreadLimit::set(2);
}

BOOST_AUTO_TEST_CASE(dual_inputs_give_the_derivative_of_the_gradient_by_the_inputs) {
  Draw draw(44);
  for (int n = 0; n < 60; ++n) {
    const Network net =
        draw.network(n % 2 ? "kutta4" : "trapezoidal", Activation::tanh, draw.whole(4, 6), draw.whole(1, 6));
    Problem<double> p = draw.problem(net, draw.whole(1, 30), static_cast<TargetKind>(n / 2 % 2));
    const std::vector<double> direction = draw.normals(static_cast<Index>(p.X.size()));
    Problem<Dual<double>> dual = p.as<Dual<double>>();
    Problem<Complex> complex = p.as<Complex>();
    for (std::size_t i = 0; i < direction.size(); ++i) {
      dual.X[i].derivative = direction[i];
      complex.X[i] += Complex(0, tiny * direction[i]);
    }
    const Result<Dual<double>> d = gradient_of(dual);
    const Result<Complex> c = gradient_of(complex);
    double largest = 0, error = 0;
    const auto compare = [&](const auto& of_dual, const auto& of_complex) {
      for (std::size_t i = 0; i < of_dual.size(); ++i) {
        const double step = of_complex[i].imag() / tiny;
        largest = std::max(largest, std::abs(step));
        if (!(std::abs(of_dual[i].derivative - step) <= error))
          error = std::abs(of_dual[i].derivative - step);
      }
    };
    compare(d.controls, c.controls);
    compare(d.rows, c.rows);
    BOOST_TEST(error <= 1e-11 * largest, "network " << n);
  }
}

BOOST_AUTO_TEST_SUITE_END()
