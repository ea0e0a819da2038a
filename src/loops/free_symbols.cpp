// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <set>

#include "loops/kernel.h"
#include "loops/rewrite.h"

namespace ingot::core::loops {

std::vector<std::string> free_symbols(const Kernel& kernel) {
  std::set<std::string> used, bound;
  const auto add = [&](const Dim& dim) {
    for (std::string& name : dim.symbols()) used.insert(std::move(name));
  };
  for (const Buffer& buffer : kernel.buffers) std::ranges::for_each(buffer.type.shape, add);
  for (const Loop& loop : kernel.parallel) {
    add(loop.extent);
    bound.insert(loop.variable);
  }
  for (const Stage& stage : kernel.stages) {
    visit_dims(stage, add);
    for (const Loop& loop : stage.loops) bound.insert(loop.variable);
    for (const Loop& loop : stage.reduce) bound.insert(loop.variable);
    for (const Binding& binding : stage.bindings) bound.insert(binding.symbol);
  }
  std::vector<std::string> result;
  std::ranges::set_difference(used, bound, std::back_inserter(result));
  return result;
}

}  // namespace ingot::core::loops
