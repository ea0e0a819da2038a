// SPDX-License-Identifier: Apache-2.0
#include "backends/fake/compile/backend.h"

#include <fmt/core.h>

#include "backends/fake/kernel_abi.h"
#include "backends/steps/fusion_rules.h"
#include "backends/steps/members.h"
#include "loops/overwrite.h"
#include "support/error.h"

namespace ingot::core::fake {
namespace {

LoweredKernel kernel_of(const loops::Kernel& loops) {
  LoweredKernel kernel{.tactic = {}, .launch = {}, .key = to_string(loops), .compile = {}};
  for (const std::string& symbol : loops::free_symbols(loops))
    kernel.launch.symbols.push_back(Dim::symbol(symbol));
  kernel.compile = [text = kernel.key, name = loops.name] {
    const auto bytes = as_bytes(text);
    return Image{.kernel = name,
                 .target = fmt::format("{}:{}", kBackend, kDevice),
                 .code = {bytes.begin(), bytes.end()}};
  };
  return kernel;
}

// Whether the queue does it: other dtypes have no reductions.
bool is_collective_of_queue(const Node& node) {
  if (!node.op->traits.has(Trait::kCollective)) return false;
  const DType dtype = node.operand_type(0).dtype;
  return bit_width(dtype) >= 16 && (is_floating(dtype) || is_integer(dtype));
}

class FakeBackend final : public Backend {
 public:
  std::string_view name() const override { return kBackend; }
  std::string_view generator() const override { return "the text of Loop IR"; }
  Place place() const override { return {Place::Kind::kDevice, 0}; }

  std::string device(std::string_view words) const override {
    if (words.empty() || words == kDevice) return std::string(kDevice);
    throw UserError("INGOT-U123", fmt::format("'{}' is not a fake device", words),
                    fmt::format("the only one is '{}'", kDevice));
  }

  Support supports(const Node& node, const SymbolValues&, const Target&) const override {
    if (is_collective_of_queue(node)) return {};
    if (!node.op->routine.empty()) return {.runs_on_host = true};
    if (node.op->lower != nullptr || node.op->traits.has(Trait::kFused)) return {};
    return {Support::Answer::kNo, fmt::format("there is no kernel for {}", node.op->name)};
  }

  LayoutRequest layouts(const Node&, const Target&) const override { return {}; }

  FusionAnswer may_fuse_consumer(const Node& root, const Node& consumer, const Target&) const override {
    return may_take_consumer(root, consumer, is_ready);
  }
  FusionAnswer may_fuse_producer(const Node& root, const Node& producer, const Target&) const override {
    return may_take_producer(root, producer, is_ready);
  }

  std::vector<LoweredStep> lower(const Node& node, const SymbolTable& symbols, const Target&) const override {
    if (is_collective_of_queue(node)) return {lower_device_collective(node)};
    if (!node.op->routine.empty()) return {lower_routine(node)};
    const Members members = members_of(node);
    const RegionKernel region = compose_members(members, symbols);
    LoweredStep step;
    step.name = step_name(members.nodes);
    step.may_overwrite = loops::overwritable_buffers(region.kernel);
    for (const Value* value : region.buffers) add_argument(step, members, value);
    step.action = kernel_of(region.kernel);
    return {step};
  }

 private:
  static bool is_ready(const Node&) { return true; }
};

}  // namespace

const Backend& backend() {
  static const FakeBackend instance;
  return instance;
}

}  // namespace ingot::core::fake
