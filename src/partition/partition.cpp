// SPDX-License-Identifier: Apache-2.0
#include "partition/partition.h"

#include <fmt/core.h>

#include "partition/choose_sides.h"
#include "support/error.h"

namespace ingot::core {

namespace {

// Torch can only run a branch or loop whole: errors name it, and it does not matter what is slow inside.
void require_support_of_graphs(const Node& node, const SymbolValues& sizes, const EngineBackends& backends) {
  try {
    for (const auto& graph : node.graphs) require_support(*graph, sizes, backends, {});
  } catch (const UnsupportedError& error) {
    ErrorDetails details = error.details();
    details.node = node.name;
    throw UnsupportedError(std::move(details));
  }
}

// What runs on the host beside a device is compared with torch on the device, as far as that is known.
Support support_of(const Node& node, const SymbolValues& sizes, const EngineBackends& backends) {
  constexpr double kNotable = 1.25;
  const BackendTarget& on = backends.of(node);
  Support support = on.backend->supports(node, sizes, on.target);
  if (!backends.is_on_host(node) || support.answer == Support::Answer::kNo) return support;
  const BackendTarget& device = backends.own();
  Support there = device.backend->supports(node, sizes, device.target);
  if (there.runs_on_host) return there;
  if (there.answer != Support::Answer::kSlow || is_named(node, device.target)) return {};
  there.own_ns = support.own_ns > 0 ? support.own_ns : on.backend->predicted_ns(node, sizes, on.target);
  for (const Value* result : node.results) there.own_ns += 2 * copy_ns(*result, sizes);
  return there.own_ns > kNotable * there.peer_ns ? there : Support{};
}

}  // namespace

std::vector<SlowNode> require_support(const Graph& graph, const SymbolValues& sizes,
                                      const EngineBackends& backends, const std::set<const Node*>& once) {
  std::vector<SlowNode> slow;
  for (const auto& node : graph.nodes()) {
    if (node->op->traits.has(Trait::kSource)) continue;
    if (node->op->traits.has(Trait::kControlFlow)) {
      require_support_of_graphs(*node, sizes, backends);
      continue;
    }
    Support support = support_of(*node, sizes, backends);
    if (support.answer == Support::Answer::kSlow && !once.contains(node.get()))
      slow.push_back({node->name, std::string(node->op->name), node->source.to_string(),
                      std::move(support.reason), support.own_ns, support.peer_ns});
    if (support.answer != Support::Answer::kNo) continue;
    throw UnsupportedError(
        {.code = "INGOT-N001",
         .message = fmt::format("backend \"{}\" cannot run {}: {}", backends.of(*node).backend->name(),
                                node->op->name, support.reason),
         .node = node->name,
         .source_line = node->source.to_string(),
         .advice = "run this part in torch (torch.compile does so by itself)"});
  }
  return slow;
}

}  // namespace ingot::core
