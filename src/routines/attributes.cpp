// SPDX-License-Identifier: Apache-2.0
#include <charconv>

#include <fmt/core.h>

#include "routines/routines.h"
#include "support/error.h"

namespace ingot::core::routines {
namespace {

std::string_view attribute(const RoutineCall& call, std::string_view name) {
  std::string_view rest = call.attributes;
  while (!rest.empty()) {
    const std::string_view entry = rest.substr(0, rest.find(' '));
    rest.remove_prefix(std::min(rest.size(), entry.size() + 1));
    if (entry.size() > name.size() && entry.starts_with(name) && entry[name.size()] == '=')
      return entry.substr(name.size() + 1);
  }
  throw UserError("INGOT-U330", "a routine's attribute is missing: " + std::string(name));
}

}  // namespace

int64_t integer_attribute(const RoutineCall& call, std::string_view name) {
  const std::string_view text = attribute(call, name);
  int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size())
    throw UserError("INGOT-U331", "a routine's attribute is not a number: " + std::string(text));
  return value;
}

bool flag_attribute(const RoutineCall& call, std::string_view name) {
  return attribute(call, name) == "true";
}

std::string_view text_attribute(const RoutineCall& call, std::string_view name) {
  const std::string_view quoted = attribute(call, name);
  return quoted.size() >= 2 ? quoted.substr(1, quoted.size() - 2) : quoted;
}

void require_fit(bool fits, std::string_view routine) {
  if (fits) return;
  throw UserError("INGOT-U332",
                  fmt::format("the tensors of the routine '{}' have inconsistent shapes or dtypes", routine));
}

AxisView::AxisView(std::span<const int64_t> shape, int64_t axis) {
  for (size_t i = 0; i < shape.size(); ++i) {
    const auto at = static_cast<int64_t>(i);
    (at < axis ? outer : at == axis ? extent : inner) *= shape[i];
  }
}

}  // namespace ingot::core::routines
