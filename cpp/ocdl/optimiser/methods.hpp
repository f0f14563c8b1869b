#pragma once

#include <memory>
#include <variant>

#include "ocdl/optimiser/adam.hpp"
#include "ocdl/optimiser/armijo.hpp"
#include "ocdl/optimiser/backtracking.hpp"
#include "ocdl/optimiser/gradient_descent.hpp"
#include "ocdl/optimiser/lbfgs.hpp"
#include "ocdl/optimiser/newton_cg.hpp"

namespace ocdl {

/// All methods: the settings of each, with their names, and its name.
using MethodOptions = std::variant<GradientDescentOptions, BacktrackingOptions, ArmijoOptions, AdamOptions,
                                   LBFGSOptions, NewtonCGOptions>;

template <class T>
std::unique_ptr<Method<T>> make_method(const MethodOptions& options, const TrainingProblem<T>& problem) {
  struct Maker {
    const TrainingProblem<T>& problem;
    using Made = std::unique_ptr<Method<T>>;
    Made operator()(const GradientDescentOptions& o) const {
      return std::make_unique<GradientDescent<T>>(o, problem.size());
    }
    Made operator()(const BacktrackingOptions& o) const {
      return std::make_unique<Backtracking<T>>(o, problem.size());
    }
    Made operator()(const ArmijoOptions& o) const { return std::make_unique<Armijo<T>>(o, problem.size()); }
    Made operator()(const AdamOptions& o) const { return std::make_unique<Adam<T>>(o, problem); }
    Made operator()(const LBFGSOptions& o) const { return std::make_unique<LBFGS<T>>(o, problem.size()); }
    Made operator()(const NewtonCGOptions& o) const { return std::make_unique<NewtonCG<T>>(o, problem); }
  };
  return std::visit(Maker{problem}, options);
}

}  // namespace ocdl
