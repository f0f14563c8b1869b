#pragma once

#include <map>
#include <stdexcept>
#include <string>
#include <vector>

#include "ocdl/types.hpp"

namespace ocdl {

/// All monomials of some variables with total degree at most `degree`, in graded lexicographic order: 1, x_0,
/// x_1, ..., x_0^2, x_0 x_1, ... Each but the first is an earlier one times a variable, and its derivatives
/// are multiples of earlier ones.
class Monomials {
 public:
  /// More have no place in memory beside the samples' states.
  static constexpr Index max_count = 10'000;

  struct Factor {
    Index monomial, variable;
  };
  /// d monomial / d variable = exponent * source.
  struct Derivative {
    Index monomial, variable, source;
    double exponent;
  };

  std::vector<Factor> factors;          ///< of each monomial but the first
  std::vector<Derivative> derivatives;  ///< those that are not 0

  Monomials(Index dim, Index degree) {
    if (count(dim, degree) > max_count)
      throw std::invalid_argument("a polynomial of degree " + std::to_string(degree) + " in " +
                                  std::to_string(dim) + " components has more than " +
                                  std::to_string(max_count) + " monomials, which is the limit");
    std::map<std::vector<Index>, Index> numbers = {{{}, 0}};  // by the variables, in ascending order
    std::vector<std::vector<Index>> last_degree = {{}};
    for (Index order = 1; order <= degree; ++order) {
      std::vector<std::vector<Index>> of_degree;
      for (const std::vector<Index>& shorter : last_degree)
        for (Index variable = shorter.empty() ? 0 : shorter.back(); variable < dim; ++variable) {
          std::vector<Index> variables = shorter;
          variables.push_back(variable);
          const Index number = size();
          factors.push_back({numbers.at(shorter), variable});
          add_derivatives(number, variables, numbers);
          numbers[variables] = number;
          of_degree.push_back(std::move(variables));
        }
      last_degree = std::move(of_degree);
    }
  }

  Index size() const { return static_cast<Index>(factors.size()) + 1; }

  /// (dim + degree) over degree, or something beyond the limit.
  static Index count(Index dim, Index degree) {
    double product = 1;
    const Index least = std::min(dim, degree), most = std::max(dim, degree);
    for (Index n = 1; n <= least && product <= max_count; ++n)
      product *= static_cast<double>(most + n) / static_cast<double>(n);
    return static_cast<Index>(std::min(product + 0.5, 2.0 * max_count));
  }

 private:
  void add_derivatives(Index number, const std::vector<Index>& variables,
                       const std::map<std::vector<Index>, Index>& numbers) {
    for (std::size_t at = 0; at < variables.size();) {
      std::size_t end = at;
      while (end < variables.size() && variables[end] == variables[at]) ++end;
      std::vector<Index> source = variables;
      source.erase(source.begin() + static_cast<std::ptrdiff_t>(at));
      derivatives.push_back({number, variables[at], numbers.at(source), static_cast<double>(end - at)});
      at = end;
    }
  }
};

}  // namespace ocdl
