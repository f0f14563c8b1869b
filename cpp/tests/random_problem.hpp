#pragma once

#include <random>
#include <vector>

#include "ocdl/objective/objective.hpp"
#include "ocdl/tableau/library.hpp"

namespace ocdl {

// Compiled once, in sweeps.cpp.
extern template class AdjointSweep<std::complex<double>>;
extern template class AdjointSweep<Dual<double>>;

}  // namespace ocdl

namespace ocdl::testing {

/// A network with data and controls to evaluate it on, drawn at random.
template <class T>
struct Problem {
  Network net;
  Objective objective;
  std::vector<T> controls, X, weights;
  std::vector<std::int64_t> labels;
  std::vector<T> numbers;                 ///< targets in the place of labels, where the loss takes them
  Index times = 0;                        ///< of observations, where the numbers are such
  std::vector<double> shared_times = {};  ///< empty: samples have their own

  Index samples() const { return static_cast<Index>(X.size()) / net.row_size(); }
  Data<T> data() const {
    const bool of_classes = traits_of(objective.loss).targets == TargetKind::classes;
    const ObservationGrid grid{times, shared_times.empty() ? nullptr : shared_times.data()};
    const Index width = grid ? grid.row_width(net.outputs) : net.outputs;
    return {{X.data(), net.row_size()},
            {of_classes ? labels.data() : nullptr, {of_classes ? nullptr : numbers.data(), width}, grid},
            weights.empty() ? nullptr : weights.data(),
            samples()};
  }

  template <class S>
  Problem<S> as() const {
    const auto cast = [](const std::vector<T>& v) { return std::vector<S>(v.begin(), v.end()); };
    return {net,    objective,     cast(controls), cast(X),     cast(weights),
            labels, cast(numbers), times,          shared_times};
  }
};

class Draw {
 public:
  explicit Draw(unsigned seed) : engine_(seed) {}

  Index whole(Index least, Index most) { return std::uniform_int_distribution<Index>(least, most)(engine_); }
  double uniform() { return std::uniform_real_distribution<double>()(engine_); }
  bool coin(double probability = 0.5) { return std::bernoulli_distribution(probability)(engine_); }
  double normal() { return std::normal_distribution<double>()(engine_); }
  std::vector<double> normals(Index size, double scale = 1) {
    std::vector<double> v(static_cast<std::size_t>(size));
    for (double& x : v) x = scale * normal();
    return v;
  }

  /// Controls of a size that neither saturates nor amplifies, so that roundoff stays roundoff; steps of both
  /// signs, some 0.
  std::vector<double> controls(const Network& net) {
    const double root = std::sqrt(static_cast<double>(net.dim));
    std::vector<double> u = normals(net.control_size(), 1 / root);
    const Controls<double> parts = net.split(u.data());
    for (const Part& part : net.parts) {
      if (part.role != Role::field || part.shape.size() < 3 || part.shape.back() == net.rows()) continue;
      const double size =
          net.degree ? 0.03 : std::sqrt(static_cast<double>(net.dim) / static_cast<double>(net.width));
      for (Index n = part.range.begin; n < part.range.end; ++n) u[static_cast<std::size_t>(n)] *= size;
    }
    const double step = 1.0 / static_cast<double>(net.layers);
    const bool uniform = coin(0.3);
    for (Index j = 0; j < net.step_count(); ++j)
      parts.h(j) = uniform ? step : coin(0.2) ? 0.0 : step * (0.5 + normal());
    return u;
  }

  Network network(const std::string& tableau, Activation activation, Index layers, Index dim) {
    const bool residual = coin(0.85);
    const Index augment = coin(0.3) ? whole(0, dim - 1) : 0;
    auto field =
        residual ? static_cast<FieldKind>(whole(0, static_cast<Index>(fields.size()) - 1)) : FieldKind::dense;
    if (traits_of(field).needs_even_dim && dim % 2) field = FieldKind::dense;
    const std::string_view option = traits_of(field).option;
    std::vector<Index> layer_sets;
    if (coin(0.3)) {
      const Index sets = whole(1, layers);
      for (Index j = 0; j < layers; ++j) layer_sets.push_back(j * sets / layers);
    }
    const Index inputs = traits_of(field).takes_inputs && coin() ? whole(1, 3) : 0;
    return Network({.features = dim - augment,
                    .dim = dim,
                    .layers = layers,
                    .outputs = whole(1, 4),
                    .tableau = named(tableau),
                    .activation = activation,
                    .field_kind = field,
                    .width = option == "width" ? whole(1, max_width(field, dim)) : 0,
                    .degree = option == "degree" ? whole(1, dim + inputs < 6 ? 3
                                                            : dim < 40       ? 2
                                                                             : 1)
                                                 : 0,
                    .inputs = inputs,
                    .linear_inputs = inputs > 0 && coin(),
                    .residual = residual,
                    .stage_controls = coin(0.4),
                    .learns_steps = residual && coin(0.8),
                    .horizon = 1.0 + coin(),
                    .layer_sets = layer_sets});
  }

  /// Where the width is optional K stands twice in the field, which is steep if it has many rows.
  static Index max_width(FieldKind field, Index dim) {
    if (!traits_of(field).requires_option) return dim + 2;
    return dim < 40 ? 30 : 130;
  }

  /// A loss of this kind, with parameters of any size where it has some.
  Loss loss(TargetKind kind) {
    std::vector<Loss> known;
    for_each_loss([&](auto record) {
      for (const auto& parameter : record.parameters) {
        const double most = std::min(parameter.below, 2.0);
        record.*parameter.member = parameter.above + (most - parameter.above) * (0.05 + 0.9 * uniform());
      }
      if (record.traits.targets == kind) known.push_back(record);
    });
    return known[static_cast<std::size_t>(whole(0, static_cast<Index>(known.size()) - 1))];
  }

  Problem<double> problem(Network net, Index samples, TargetKind kind = TargetKind::classes) {
    Problem<double> p{std::move(net), {}, {}, {}, {}, {}, {}};
    p.controls = controls(p.net);
    p.X = normals(samples * p.net.row_size());
    for (Index i = 0; i < samples; ++i) p.labels.push_back(whole(0, std::max<Index>(p.net.outputs - 1, 1)));
    if (coin()) {
      p.weights = normals(samples);
      for (double& w : p.weights) w = std::abs(w);
    }
    p.objective = {loss(kind), coin(), {}};
    p.numbers = normals(samples * p.net.outputs);
    for (double& number : p.numbers)
      if (number < traits_of(p.objective.loss).minimum_target) number = coin(0.3) ? 0 : -number;
    if (coin(0.2)) p.objective.regulariser = regulariser(p.net);
    return p;
  }

  /// Observes the problem at so many times, shared or of each sample, with holes. Steps that are not learned
  /// become positive.
  void observe(Problem<double>& p, Index times, bool shared) {
    const Network& net = p.net;
    const bool are_numbers = net.learns_steps || !net.residual;
    const Controls<double> u = net.split(p.controls.data());
    double end = static_cast<double>(net.layers);
    if (!are_numbers) {
      end = 0;
      for (Index j = 0; j < net.layers; ++j) end += u.h(j) = std::abs(u.h(j)) + 0.02;
    }
    const auto sorted_times = [&] {
      std::vector<double> t;
      for (Index n = 0; n < times; ++n)
        t.push_back(are_numbers ? double(whole(0, net.layers)) : coin(0.2) ? end : end * uniform());
      std::sort(t.begin(), t.end());
      return t;
    };
    p.times = times;
    if (shared) p.shared_times = sorted_times();
    const double least = traits_of(p.objective.loss).minimum_target;
    p.numbers.clear();
    for (Index i = 0; i < p.samples(); ++i) {
      const Index present = whole(0, times * net.outputs - 1);
      for (Index n = 0; n < times * net.outputs; ++n) {
        double value = normal();
        if (value < least) value = coin(0.3) ? 0 : -value;
        p.numbers.push_back(n != present && coin(0.3) ? std::numeric_limits<double>::quiet_NaN() : value);
      }
      if (shared) continue;
      const std::vector<double> clock = sorted_times();
      p.numbers.insert(p.numbers.end(), clock.begin(), clock.end());
    }
  }

  /// Penalties of all kinds, on parts of all kinds.
  Regulariser regulariser(const Network& net) {
    const auto parts = [&]() -> PartSelection {
      if (coin()) return {};
      std::vector<std::string> chosen;
      for (const Part& part : net.parts)
        if (coin()) chosen.push_back(part.name);
      return {chosen};
    };
    Regulariser sum;
    for_each_penalty([&](auto penalty) {
      penalty.weight = std::abs(normal());
      if constexpr (std::is_same_v<decltype(penalty), GroupL1>)
        penalty.axis = coin() ? net.parts[0].axes[0] : "dim";
      else
        penalty.parts = parts();
      sum.penalties.push_back(penalty);
    });
    return sum;
  }

 private:
  std::mt19937_64 engine_;
};

template <class T>
Wide<T> value_of(const Problem<T>& p) {
  Workspace<T> workspace;
  return value<T>(p.net, p.controls.data(), p.data(), p.objective, workspace);
}

template <class T>
struct Result {
  Wide<T> value;
  std::vector<T> controls, rows;

  bool operator==(const Result&) const = default;
};

template <class T>
Result<T> gradient_of(const Problem<T>& p, const BlockPlan& plan) {
  Workspace<T> workspace;
  Result<T> r{0, std::vector<T>(p.controls.size()), std::vector<T>(p.X.size())};
  r.value = value_and_derivatives<T>(p.net, p.controls.data(), p.data(), p.objective,
                                     {r.controls.data(), r.rows.data(), nullptr}, workspace, plan);
  return r;
}

template <class T>
Result<T> gradient_of(const Problem<T>& p) {
  return gradient_of(p, plan_blocks<T>(p.net, p.samples(), p.data().targets.grid.kept_per_sample(p.net)));
}

}  // namespace ocdl::testing
