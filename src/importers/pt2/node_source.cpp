// SPDX-License-Identifier: Apache-2.0
#include "importers/pt2/node_source.h"

#include <charconv>
#include <optional>

namespace ingot::core::pt2 {
namespace {

std::string_view first_line(std::string_view text) { return text.substr(0, text.find('\n')); }

// `File "model.py", line 12, in forward`
std::optional<aten::Source> read_frame(std::string_view line) {
  constexpr std::string_view kFile = "File \"", kLine = "\", line ", kFunction = ", in ";
  const size_t name_end = line.find(kLine);
  if (!line.starts_with(kFile) || name_end == std::string_view::npos) return std::nullopt;
  if (line[kFile.size()] == '<') return std::nullopt;  // generated code, not in a file
  aten::Source source;
  source.file = line.substr(kFile.size(), name_end - kFile.size());
  const std::string_view rest = line.substr(name_end + kLine.size());
  std::from_chars(rest.data(), rest.data() + rest.size(), source.line);
  if (const size_t function = rest.find(kFunction); function != std::string_view::npos)
    source.function = rest.substr(function + kFunction.size());
  return source;
}

bool is_of_torch(std::string_view file) {
  return file.find("-packages/torch/") != std::string_view::npos || file.starts_with("torch/");
}

aten::Source innermost_frame(std::string_view trace) {
  aten::Source innermost, innermost_of_user;
  while (!trace.empty()) {
    std::string_view line = first_line(trace);
    trace.remove_prefix(std::min(trace.size(), line.size() + 1));
    line.remove_prefix(std::min(line.size(), line.find_first_not_of(' ')));
    const std::optional<aten::Source> frame = read_frame(line);
    if (!frame) continue;
    innermost = *frame;
    if (!is_of_torch(frame->file)) innermost_of_user = *frame;
  }
  return innermost_of_user.file.empty() ? innermost : innermost_of_user;
}

// "key,path,type;key,path,type": the path of the last module.
std::string_view innermost_module(std::string_view stack) {
  constexpr std::string_view kSelf = "L['self'].";
  const size_t semicolon = stack.rfind(';');
  std::string_view module = semicolon == std::string_view::npos ? stack : stack.substr(semicolon + 1);
  module.remove_prefix(std::min(module.size(), module.find(',') + 1));
  module = module.substr(0, module.find(','));
  if (module.starts_with(kSelf)) module.remove_prefix(kSelf.size());
  return module;
}

}  // namespace

aten::Source read_source(Json node_metadata) {
  aten::Source source;
  if (const std::optional<Json> trace = node_metadata.find("stack_trace"))
    source = innermost_frame(trace->text());
  if (const std::optional<Json> stack = node_metadata.find("nn_module_stack"))
    source.module_path = innermost_module(stack->text());
  return source;
}

bool is_unused_metadata(std::string_view object, std::string_view key) {
  if (object != "metadata") return false;
  return key == "from_node" || key == "torch_fn" || key == "source_fn_stack" || key == "custom";
}

}  // namespace ingot::core::pt2
