#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "ocdl/tableau/tableau.hpp"

namespace ocdl {

/// The method of this name. Throws std::invalid_argument listing the known names.
const Tableau& named(std::string_view name);

/// The names that `named` accepts, in the order of the table in library.cpp.
std::vector<std::string> names();

}  // namespace ocdl
