#pragma once

#include <algorithm>
#include <array>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

/// Choices of the core and the names by which Python knows them.
namespace ocdl {

template <class Enum, std::size_t Size>
Enum enum_from(const std::array<std::string_view, Size>& names, std::string_view name) {
  const auto match = std::find(names.begin(), names.end(), name);
  if (match == names.end()) throw std::invalid_argument("unknown name: " + std::string(name));
  return static_cast<Enum>(match - names.begin());
}

/// The names in a table of facts.
template <class Facts, std::size_t Size>
constexpr std::array<std::string_view, Size> names_of(const std::array<Facts, Size>& table) {
  std::array<std::string_view, Size> names;
  for (std::size_t n = 0; n < Size; ++n) names[n] = table[n].name;
  return names;
}

template <std::size_t Size>
std::vector<std::string> listed(const std::array<std::string_view, Size>& names) {
  return {names.begin(), names.end()};
}

}  // namespace ocdl
