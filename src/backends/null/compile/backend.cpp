// SPDX-License-Identifier: Apache-2.0
#include "backends/null/compile/backend.h"

#include "ir/bound_symbol.h"
#include "loops/overwrite.h"

namespace ingot::core::null {
namespace {

void add_arguments(LoweredStep& step, const std::vector<Value*>& values, bool writes, bool keep_absent) {
  for (Value* value : values) {
    if (value == nullptr && !keep_absent) continue;
    step.arguments.push_back(value);
    step.writes.push_back(writes);
  }
}

class NullBackend final : public Backend {
 public:
  std::string_view name() const override { return "null"; }
  std::string_view generator() const override { return "nothing"; }
  std::string device(std::string_view) const override { return {}; }
  Support supports(const Node&, const SymbolValues&, const Target&) const override { return {}; }
  LayoutRequest layouts(const Node&, const Target&) const override { return {}; }
  FusionAnswer may_fuse_consumer(const Node&, const Node&, const Target&) const override { return {}; }
  FusionAnswer may_fuse_producer(const Node&, const Node&, const Target&) const override { return {}; }

  std::vector<LoweredStep> lower(const Node& node, const SymbolTable&, const Target&) const override {
    LoweredStep step;
    step.name = node.op->name;
    const bool is_routine = !node.op->routine.empty();
    add_arguments(step, node.operands, false, is_routine);
    add_arguments(step, node.results, true, false);
    if (std::string symbol = bound_symbol(node); !symbol.empty())
      step.binds.emplace_back(std::move(symbol), node.results[0]);
    if (is_routine) {
      step.action = RoutineStep{std::string(node.op->routine), {}};
      return {step};
    }
    if (node.op->lower != nullptr) step.may_overwrite = loops::overwritable_buffers(node.op->lower(node));
    step.action = LoweredKernel{.launch = {}, .key = step.name, .compile = [name = step.name] {
                                  return Image{.kernel = name, .target = "null", .code = {std::byte{}}};
                                }};
    return {step};
  }
};

}  // namespace

const Backend& backend() {
  static const NullBackend instance;
  return instance;
}

}  // namespace ingot::core::null
