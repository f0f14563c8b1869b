#pragma once

#include <variant>

#include "ocdl/field/antisymmetric.hpp"
#include "ocdl/field/dense.hpp"
#include "ocdl/field/mlp.hpp"
#include "ocdl/field/polynomial.hpp"
#include "ocdl/field/potential.hpp"

namespace ocdl {

/// The vector fields that there are. A new one is a file, a value here and an alternative below.
enum class FieldKind { dense, antisymmetric, hamiltonian, mlp, polynomial, gradient };

/// In the order of the enumeration.
template <class T>
using FieldVariant =
    std::variant<Dense<T>, Antisymmetric<T>, Hamiltonian<T>, Mlp<T>, Polynomial<T>, GradientField<T>>;

}  // namespace ocdl
