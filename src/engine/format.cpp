// SPDX-License-Identifier: Apache-2.0
#include "engine/format.h"

#include <set>
#include <string>

#include "engine/section_info.h"
#include "types/linear_dim.h"

namespace ingot::core {

bool has_linear_sizes(const Program& main) {
  std::set<std::string> alone, others;
  for (const auto* ports : {&main.inputs, &main.states}) {
    for (const Port& port : *ports) {
      for (const Dim& dim : port.type.shape) {
        if (const auto linear = linear_dim(dim)) (dim.is_symbol() ? alone : others).insert(linear->symbol);
      }
    }
  }
  for (const auto& [name, info] : main.symbols)
    if (info.by_rank) alone.insert(name);
  for (const std::string& symbol : others)
    if (!alone.contains(symbol)) return true;
  return false;
}

uint32_t format_of(const Program& main, size_t levels) {
  if (has_linear_sizes(main)) return kLinearSizesFormatVersion;
  if (has_rank_sizes(main)) return kRanksFormatVersion;
  return levels > 1 ? kLevelsFormatVersion : kEngineFormatVersion;
}

}  // namespace ingot::core
