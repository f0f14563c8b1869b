#pragma once

#include <stdexcept>

#include "ocdl/objective/penalties/part_selection.hpp"

namespace ocdl {

/// Groups of controls: group j has the entries of some parts whose index on one axis is j. Where a part has
/// two axes of that name it is the last one, so that the groups of a matrix are its columns.
struct AxisGroups {
  struct Block {
    Range range;
    Index outer, inner;  ///< the part is (outer, count, inner)
  };
  Index count = 0;
  std::vector<Block> blocks;

  AxisGroups(const Network& net, const PartSelection& parts, std::string_view axis) {
    for (const Part& part : net.parts) {
      if (!parts.has(part)) continue;
      const auto match = std::find(part.axes.rbegin(), part.axes.rend(), axis);
      if (match == part.axes.rend()) {
        if (!parts.names) continue;
        throw std::invalid_argument("the part " + part.name + " has no axis '" + std::string(axis) + "'");
      }
      const auto at = static_cast<std::size_t>(part.axes.rend() - match) - 1;
      const Index size = part.range.size(), length = part.shape[at];
      Index inner = 1;
      for (std::size_t n = at + 1; n < part.shape.size(); ++n) inner *= part.shape[n];
      count = std::max(count, length);
      if (length != count) throw std::invalid_argument("the axes of the parts have different lengths");
      blocks.push_back({part.range, size / (length * inner), inner});
    }
  }

  /// f(n) for every entry of group j.
  template <class F>
  void for_each_entry(Index j, const F& f) const {
    for (const Block& block : blocks)
      for (Index o = 0; o < block.outer; ++o) {
        const Index first = block.range.begin + (o * count + j) * block.inner;
        for (Index n = first; n < first + block.inner; ++n) f(n);
      }
  }

  /// |u_j|_2.
  template <class T>
  Wide<T> norm(const T* u, Index j) const {
    Wide<T> squares{};
    for_each_entry(j, [&](Index n) { squares = fma(Wide<T>(u[n]), Wide<T>(u[n]), squares); });
    using std::sqrt;
    return value_of(squares) == 0 ? Wide<T>{} : sqrt(squares);
  }
};

/// weight sum_j |u_j|_2 over the groups of an axis; its subgradient at u_j = 0 is 0.
struct GroupL1 {
  static constexpr std::string_view name = "group_l1";
  static constexpr bool nonsmooth = true;

  double weight = 0;
  PartSelection parts;
  std::string axis;

  template <class T>
  Wide<T> add(const Network& net, const T* controls, T* gradient) const {
    const AxisGroups groups(net, parts, axis);
    Wide<T> sum{};
    for (Index j = 0; j < groups.count; ++j) {
      const Wide<T> norm = groups.norm(controls, j);
      sum += norm;
      if (!gradient || value_of(norm) == 0) continue;
      const T factor = T(Wide<T>(weight) / norm);
      groups.for_each_entry(j, [&](Index n) { gradient[n] = fma(factor, controls[n], gradient[n]); });
    }
    return weight * sum;
  }
};

}  // namespace ocdl
