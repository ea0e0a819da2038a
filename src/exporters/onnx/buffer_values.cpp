// SPDX-License-Identifier: Apache-2.0
#include "exporters/onnx/buffer_values.h"

#include <algorithm>

#include "exporters/onnx/describe.h"

namespace ingot::core::exported {

BufferValues::BufferValues(const Program& program, UniqueNames& names, OnnxGraph& graph)
    : program_(program),
      names_(names),
      graph_(graph),
      contents_(program.buffers.size()),
      preferred_(program.buffers.size()) {}

void BufferValues::set(BufferId buffer, std::string name) { contents_[buffer].value = std::move(name); }

void BufferValues::prefer(BufferId buffer, const std::string& name) { preferred_[buffer] = name; }

std::string BufferValues::read(BufferId buffer) {
  const BufferId whole = root_buffer(program_, buffer);
  Content& content = contents_[buffer];
  const bool is_part = whole != buffer;
  if (is_part && std::ranges::find(contents_[whole].parts, buffer) != contents_[whole].parts.end())
    return content.value;
  join_parts(whole);
  if (contents_[whole].value.empty()) add_unwritten(whole);
  if (!is_part) return content.value;
  if (content.value.empty() || content.version != contents_[whole].version) {
    content.value = add_value(buffer);
    content.version = contents_[whole].version;
    add_node("view", {contents_[whole].value}, content.value);
  }
  return content.value;
}

std::string BufferValues::write(BufferId buffer) {
  const BufferId whole = root_buffer(program_, buffer);
  contents_[buffer].value = add_value(buffer);
  if (whole != buffer) {
    std::vector<BufferId>& parts = contents_[whole].parts;
    if (std::ranges::find(parts, buffer) == parts.end()) parts.push_back(buffer);
  } else {
    contents_[whole].parts.clear();
    ++contents_[whole].version;
  }
  return contents_[buffer].value;
}

void BufferValues::join_parts(BufferId whole) {
  Content& content = contents_[whole];
  if (content.parts.empty()) return;
  std::vector<std::string> inputs;
  if (!content.value.empty()) inputs.push_back(content.value);
  for (const BufferId part : content.parts) inputs.push_back(contents_[part].value);
  content.parts.clear();
  ++content.version;
  content.value = add_value(whole);
  add_node("parts", std::move(inputs), content.value);
}

// What no step has written has no defined content, but every value of ONNX has a producer.
void BufferValues::add_unwritten(BufferId buffer) {
  contents_[buffer].value = add_value(buffer);
  add_node("unwritten", {}, contents_[buffer].value);
}

std::string BufferValues::add_value(BufferId buffer) {
  const std::string& own = program_.buffers[buffer].name;
  const std::string name = names_.unused(preferred_[buffer].empty() ? own : preferred_[buffer]);
  graph_.values.push_back(value_of(name, program_.buffers[buffer].type));
  return name;
}

void BufferValues::add_node(const char* op, std::vector<std::string> inputs, const std::string& output) {
  graph_.nodes.push_back({.inputs = std::move(inputs), .outputs = {output}, .name = output, .op = op});
}

}  // namespace ingot::core::exported
