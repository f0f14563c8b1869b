#pragma once

#include <array>
#include <string_view>

#include "ocdl/kernel/dual.hpp"
#include "ocdl/objective/loss.hpp"

namespace ocdl {

/// The matrices with which the second derivative of J is modelled. With the outputs z(u) and their derivative
/// Z, the Hessian of a sample's loss is Z^T L_zz Z + sum_o L_z,o z_o''; Gauss and Newton drop the second part
/// and keep of L_zz what is not negative, which each loss states.
enum class Curvature { hessian, gauss_newton };

inline constexpr std::array<std::string_view, 2> curvature_names = {"hessian", "gauss_newton"};

/// Cotangents L_z + (L_zz dz) eps of a tile, with dz the derivatives of its outputs, become the real numbers
/// L_zz dz: a backward sweep makes Z^T L_zz dz of them. `loss` is one of the losses.
template <class T, class SomeLoss>
void keep_curvature(const SomeLoss& loss, const OutputTile<Dual<T>>& tile, Dual<T>* cotangents) {
  const Index size = tile.outputs * tile_width<Dual<T>>;
  for (Index n = 0; n < size; n += lanes<T>) {
    const Pack<T> curved = loss.template gauss_newton<T>(tile, n, load(cotangents + n).derivative);
    store<Dual<T>>(cotangents + n, {curved, Pack<T>{}});
  }
}

}  // namespace ocdl
