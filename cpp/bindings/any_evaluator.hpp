#pragma once

#include <pybind11/pybind11.h>

#include <memory>
#include <utility>

#include "ocdl/evaluator/evaluator.hpp"

namespace ocdl {

/// An evaluator in either precision, with the arrays that it looks at.
class AnyEvaluator {
 public:
  template <class T>
  AnyEvaluator(std::unique_ptr<Evaluator<T>> evaluator, pybind11::tuple kept) : kept_(std::move(kept)) {
    of<T>() = std::move(evaluator);
  }

  template <class T>
  Evaluator<T>& as() {
    if (!of<T>()) throw std::invalid_argument("the evaluator has another number type");
    return *of<T>();
  }

 private:
  std::unique_ptr<Evaluator<double>> wide_;
  std::unique_ptr<Evaluator<float>> narrow_;
  pybind11::tuple kept_;

  template <class T>
  std::unique_ptr<Evaluator<T>>& of() {
    if constexpr (std::is_same_v<T, double>)
      return wide_;
    else
      return narrow_;
  }
};

}  // namespace ocdl
