// SPDX-License-Identifier: Apache-2.0
#include "ops/routine_attributes.h"

#include <fmt/format.h>

#include "support/error.h"

namespace ingot::core {

NamedValues routine_attributes(const Node& node) {
  const auto names = node.op->attributes.names();
  NamedValues result;
  for (size_t i = 0; i < names.size(); ++i) {
    const auto add = [&](const auto& value) {
      using Kind = std::decay_t<decltype(value)>;
      if constexpr (std::is_same_v<Kind, Dim>)
        return;  // the size of a result: its tensor has it
      else if constexpr (std::is_same_v<Kind, std::vector<int64_t>>)
        result.push_back({std::string(names[i]), fmt::format("{}", fmt::join(value, ","))});
      else if constexpr (std::is_constructible_v<PlainValue, std::in_place_type_t<Kind>>)
        result.push_back({std::string(names[i]), value});
      else
        throw InternalError(fmt::format("{}: the attribute '{}' is of a kind that routines do not take",
                                        node.op->name, names[i]));
    };
    std::visit(add, node.values[i]);
  }
  return result;
}

}  // namespace ingot::core
