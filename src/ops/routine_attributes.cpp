// SPDX-License-Identifier: Apache-2.0
#include "ops/routine_attributes.h"

namespace ingot::core {

std::string routine_attributes(const Node& node) {
  const auto names = node.op->attributes.names();
  std::string text;
  for (size_t i = 0; i < names.size(); ++i) {
    if (i > 0) text += ' ';
    text += std::string(names[i]) + "=" + to_string(node.values[i]);
  }
  return text;
}

}  // namespace ingot::core
