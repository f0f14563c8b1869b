#pragma once

#include <memory>
#include <type_traits>
#include <variant>

#include "ocdl/optimiser/adam.hpp"
#include "ocdl/optimiser/armijo.hpp"
#include "ocdl/optimiser/backtracking.hpp"
#include "ocdl/optimiser/gradient_descent.hpp"
#include "ocdl/optimiser/lbfgs.hpp"
#include "ocdl/optimiser/newton_cg.hpp"

namespace ocdl {

/// All methods: a row each. A method is a class with its settings, `Options`, which have their names, its
/// name and whether it `is_proximal`: takes an L1 penalty apart from the objective. It is made of them and
/// the problem.
template <template <class> class... Kind>
struct MethodList {
  using Options = std::variant<typename Kind<double>::Options...>;

  template <class T>
  static std::unique_ptr<Method<T>> make(const Options& options, const TrainingProblem<T>& problem) {
    std::unique_ptr<Method<T>> result;
    const auto make_if_selected = [&]<class Made>(std::type_identity<Made>) {
      if (const auto* selected = std::get_if<typename Made::Options>(&options))
        result = std::make_unique<Made>(*selected, problem);
    };
    (make_if_selected(std::type_identity<Kind<T>>()), ...);
    return result;
  }
};

using Methods = MethodList<GradientDescent,  //
                           Backtracking,     //
                           Armijo,           //
                           Adam,             //
                           LBFGS,            //
                           NewtonCG>;

using MethodOptions = Methods::Options;

inline bool is_proximal(const MethodOptions& method) {
  return std::visit([](const auto& options) { return options.is_proximal; }, method);
}

template <class T>
std::unique_ptr<Method<T>> make_method(const MethodOptions& options, const TrainingProblem<T>& problem) {
  return Methods::make<T>(options, problem);
}

}  // namespace ocdl
