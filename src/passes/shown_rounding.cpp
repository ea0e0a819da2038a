// SPDX-License-Identifier: Apache-2.0
#include "passes/shown_rounding.h"

#include <set>
#include <vector>

#include "loops/kernel.h"
#include "ops/ops.h"
#include "ops/select.h"
#include "ops/step.h"
#include "types/lossless.h"

namespace ingot::core {
namespace {

// Whether the program rounds here to fewer bits than kernels compute with.
bool rounds(const Node& node) {
  if (node.op != &ops::convert) return false;
  const DType from = node.operand_type(0).dtype, to = node.results[0]->type.dtype;
  return loops::arithmetic_dtype(to) != to && is_floating(to) && !is_lossless(from, to);
}

bool may_stay_wide(const Node& node) {
  return node.op == &ops::convert && node.attributes<ops::Convert>().may_stay_wide;
}

// Whether the node tells a rounded operand from a wide one by more than an error of rounding.
bool shows_rounding(const Node& node) {
  if (rounds(node)) return !may_stay_wide(node);
  return node.op == &ops::convert || ops::is_step(node);
}

// Whether a reader shows it, also behind nodes that pass elements on.
bool shows_rounding(const Value& value) {
  std::vector<const Value*> pending{&value};
  std::set<const Value*> seen;
  while (!pending.empty()) {
    const Value* read = pending.back();
    pending.pop_back();
    if (!seen.insert(read).second) continue;
    for (const Node* user : read->users) {
      if (ops::passes_elements(*user))
        pending.push_back(user->results[0]);
      else if (shows_rounding(*user))
        return true;
    }
  }
  return false;
}

}  // namespace

bool must_round(const Node& node) {
  return rounds(node) && !may_stay_wide(node) && shows_rounding(*node.results[0]);
}

}  // namespace ingot::core
