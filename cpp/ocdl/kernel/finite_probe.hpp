#pragma once

namespace ocdl {

/// Whether everything that one thread's kernels write is known to be finite. A kernel reports what it has
/// checked while the numbers were in registers, which is cheaper than to read them again, or false where it
/// checks nothing.
class FiniteProbe {
 public:
  void report(bool is_finite) { known_finite_ &= is_finite; }
  bool known_finite() const { return known_finite_; }

 private:
  bool known_finite_ = true;
};

}  // namespace ocdl
