// SPDX-License-Identifier: Apache-2.0
#include "importers/aten/program/node_error.h"

#include <fmt/core.h>

#include "support/error.h"

namespace ingot::core::aten {

std::string source_text(const Source& source) {
  if (source.file.empty()) return {};
  return fmt::format("{}:{} in {}", source.file, source.line, source.function);
}

void refuse_node(const Node& node, const std::string& reason) {
  throw UnsupportedError({.code = "INGOT-N520",
                          .message = fmt::format("{}: {}", node.target, reason),
                          .node = node.name,
                          .source_line = source_text(node.source),
                          .advice = "torch.compile and ingot.compile run such a node in torch"});
}

}  // namespace ingot::core::aten
