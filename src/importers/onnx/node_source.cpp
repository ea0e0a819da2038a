// SPDX-License-Identifier: Apache-2.0
#include "importers/onnx/node_source.h"

#include <charconv>

namespace ingot::core::onnx {
namespace {

// `File "model.py", line 12, in forward`
bool read_frame(std::string_view line, SourceLine& source) {
  constexpr std::string_view kFile = "File \"", kLine = "\", line ", kFunction = ", in ";
  line.remove_prefix(std::min(line.size(), line.find_first_not_of(' ')));
  const size_t name_end = line.find(kLine);
  if (!line.starts_with(kFile) || name_end == std::string_view::npos) return false;
  const std::string_view file = line.substr(kFile.size(), name_end - kFile.size());
  if (file.find("-packages/torch/") != std::string_view::npos || file.starts_with('<')) return false;
  source = {};
  source.file = file;
  const std::string_view rest = line.substr(name_end + kLine.size());
  std::from_chars(rest.data(), rest.data() + rest.size(), source.line);
  if (const size_t function = rest.find(kFunction); function != std::string_view::npos)
    source.function = rest.substr(function + kFunction.size());
  return true;
}

}  // namespace

SourceLine source_of(const NodeDef& node) {
  SourceLine innermost;
  std::string_view rest = node.stack_trace;
  while (!rest.empty()) {
    const std::string_view line = rest.substr(0, rest.find('\n'));
    rest.remove_prefix(std::min(rest.size(), line.size() + 1));
    read_frame(line, innermost);
  }
  return innermost;
}

}  // namespace ingot::core::onnx
