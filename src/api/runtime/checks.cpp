// SPDX-License-Identifier: Apache-2.0
#include "api/runtime/checks.h"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include "support/error.h"

namespace ingot::core::api {

void require(const void* pointer, std::string_view name) {
  if (pointer == nullptr) [[unlikely]]
    throw UserError("INGOT-U012", fmt::format("the argument '{}' is NULL", name));
}

void require_index(size_t index, size_t count, std::string_view what) {
  if (index >= count)
    throw UserError("INGOT-U014", fmt::format("there is no {} {}: the count is {}", what, index, count));
}

void require_range(int32_t value, int32_t most, std::string_view what) {
  if (value < 0 || value > most)
    throw UserError("INGOT-U002", fmt::format("{} cannot be {}", what, value),
                    fmt::format("use an integer from 0 to {}", most));
}

size_t find_name(std::span<const std::string> names, std::string_view name, std::string_view what) {
  const auto found = std::ranges::find(names, name);
  if (found != names.end()) return static_cast<size_t>(found - names.begin());
  const std::string known = names.empty() ? fmt::format("it has no {}", what)
                                          : fmt::format("it has '{}'", fmt::join(names, "', '"));
  throw UserError("INGOT-U318", fmt::format("the engine has no {} '{}'; {}", what, name, known));
}

void require_size(size_t given, size_t least, std::string_view type) {
  if (given >= least) return;
  throw UserError("INGOT-U013",
                  fmt::format("struct_size of {} is {}, but must be at least {}", type, given, least),
                  fmt::format("set it to sizeof({})", type));
}

DType to_dtype(int32_t dtype) {
  if (dtype < INGOT_BOOL || dtype > INGOT_C128) [[unlikely]]
    throw UserError("INGOT-U016", fmt::format("{} is not a dtype", dtype), "use a value of ingot_dtype");
  return static_cast<DType>(dtype);
}

}  // namespace ingot::core::api
