// SPDX-License-Identifier: Apache-2.0
#include "partition/partition.h"

#include <fmt/core.h>

#include "support/error.h"

namespace ingot::core {

const Backend& find_backend(std::span<const Backend* const> backends, std::string_view name) {
  std::string known;
  for (const Backend* backend : backends) {
    if (backend->name() == name) return *backend;
    known += fmt::format("{}\"{}\"", known.empty() ? "" : ", ", backend->name());
  }
  throw UserError("INGOT-U003", fmt::format("this build of Ingot has no backend \"{}\"", name),
                  fmt::format("backends here: {}", known.empty() ? "none" : known));
}

namespace {

// Torch can only run a branch or loop whole: errors name it, and it does not matter what is slow inside.
void require_support_of_graphs(const Node& node, const SymbolValues& sizes, const Backend& backend,
                               const Target& target) {
  try {
    for (const auto& graph : node.graphs) require_support(*graph, sizes, backend, target, {});
  } catch (const UnsupportedError& error) {
    ErrorDetails details = error.details();
    details.node = node.name;
    throw UnsupportedError(std::move(details));
  }
}

}  // namespace

std::vector<SlowNode> require_support(const Graph& graph, const SymbolValues& sizes, const Backend& backend,
                                      const Target& target, const std::set<const Node*>& once) {
  std::vector<SlowNode> slow;
  for (const auto& node : graph.nodes()) {
    if (node->op->traits.has(Trait::kSource)) continue;
    if (node->op->traits.has(Trait::kControlFlow)) {
      require_support_of_graphs(*node, sizes, backend, target);
      continue;
    }
    Support support = backend.supports(*node, sizes, target);
    if (support.answer == Support::Answer::kSlow && !once.contains(node.get()))
      slow.push_back({node->name, std::string(node->op->name), node->source.to_string(),
                      std::move(support.reason), support.own_ns, support.peer_ns});
    if (support.answer != Support::Answer::kNo) continue;
    throw UnsupportedError({.code = "INGOT-N001",
                            .message = fmt::format("backend \"{}\" cannot run {}: {}", target.backend,
                                                   node->op->name, support.reason),
                            .node = node->name,
                            .source_line = node->source.to_string(),
                            .advice = "run this part in torch (torch.compile does so by itself)"});
  }
  return slow;
}

}  // namespace ingot::core
