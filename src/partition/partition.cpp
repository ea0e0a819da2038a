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

void require_support(const Graph& graph, const Backend& backend, const Target& target) {
  for (const auto& node : graph.nodes()) {
    if (node->op->traits.has(Trait::kSource)) continue;
    const Support support = backend.supports(*node, target);
    if (support.yes) continue;
    throw UnsupportedError({.code = "INGOT-N001",
                            .message = fmt::format("backend \"{}\" cannot run {}: {}", target.backend,
                                                   node->op->name, support.reason),
                            .node = node->name,
                            .source_line = node->source.to_string(),
                            .advice = "run this part in torch (torch.compile does so by itself)"});
  }
}

}  // namespace ingot::core
