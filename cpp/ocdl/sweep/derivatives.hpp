#pragma once

namespace ocdl {

/// Where the derivatives go; null pointers are not wanted.
template <class T>
struct Derivatives {
  T* controls = nullptr;  ///< by the controls
  T* rows = nullptr;      ///< by the rows of X, see RowGradient
  T* costates = nullptr;  ///< p, (N+1, samples, dim)
  /// Set to whether all controls and the derivatives by them are known to be finite.
  bool* known_finite = nullptr;

  bool any() const { return controls || rows || costates; }
};

}  // namespace ocdl
