// SPDX-License-Identifier: Apache-2.0
#include <charconv>

#include <fmt/core.h>

#include "api/compiler/builder.h"
#include "api/runtime/checks.h"
#include "support/error.h"

namespace ingot::core::api {
namespace {

constexpr int kDeepest = 16;  // ATen's schemas nest at most two lists

aten::Argument read_device(std::string_view text) {
  const size_t colon = text.find(':');
  aten::Device device{.type = std::string(text.substr(0, colon)), .index = -1};
  if (colon != std::string_view::npos) {
    const char* end = text.data() + text.size();
    const auto [rest, error] = std::from_chars(text.data() + colon + 1, end, device.index);
    if (error != std::errc() || rest != end) refuse_call(fmt::format("'{}' is not a device", text));
  }
  return {std::move(device)};
}

}  // namespace

void refuse_call(std::string message) {
  throw UserError("INGOT-U017", std::move(message), "this is a bug of the front end that fills the builder");
}

void refuse_enumerator(int32_t value, std::string_view type) {
  throw UserError("INGOT-U016", fmt::format("{} is not a value of {}", value, type));
}

aten::ValueId to_value_id(const aten::Graph& graph, int64_t id) {
  if (id < 0 || static_cast<size_t>(id) >= graph.values.size())
    refuse_call(fmt::format("the graph has no value {}: it has {} values", id, graph.values.size()));
  return static_cast<aten::ValueId>(id);
}

ArgumentReader::ArgumentReader(const ingot_builder& builder, const aten::Graph& graph,
                               const ingot_argument* entries, size_t count)
    : builder_(builder), graph_(graph), entries_(entries), count_(count) {
  if (count > 0) require(entries, "arguments");
}

std::string_view ArgumentReader::name() const {
  const char* name = entries_[next_].name;
  return name == nullptr ? std::string_view() : name;
}

aten::Argument ArgumentReader::read(int depth) {
  if (next_ >= count_) refuse_call("a list of arguments ends before its last child");
  if (depth > kDeepest) refuse_call("lists of arguments are nested too deeply");
  const ingot_argument& entry = entries_[next_++];
  switch (entry.kind) {
    case INGOT_ARGUMENT_NONE:
      return {aten::None{}};
    case INGOT_ARGUMENT_VALUE:
      return {to_value_id(graph_, entry.integer)};
    case INGOT_ARGUMENT_BOOL:
      return {entry.integer != 0};
    case INGOT_ARGUMENT_INTEGER:
      return {entry.integer};
    case INGOT_ARGUMENT_FLOAT:
      return {entry.number};
    case INGOT_ARGUMENT_STRING:
      return {text_or_empty(entry.text)};
    case INGOT_ARGUMENT_DTYPE:
      return {to_dtype(static_cast<int32_t>(entry.integer))};
    case INGOT_ARGUMENT_DEVICE:
      return read_device(text_or_empty(entry.text));
    case INGOT_ARGUMENT_LIST:
      return read_list(entry.count, depth + 1);
    case INGOT_ARGUMENT_GRAPH:
      return read_graph(entry.integer);
    case INGOT_ARGUMENT_COMPLEX:
      return read_complex(depth + 1);
    default:
      refuse_enumerator(entry.kind, "ingot_argument_kind");
  }
}

aten::Argument ArgumentReader::read_list(int32_t children, int depth) {
  aten::ArgumentList list;
  for (int32_t i = 0; i < children; ++i) list.push_back(read(depth));
  return {std::move(list)};
}

aten::Argument ArgumentReader::read_complex(int depth) {
  const aten::Argument re = read(depth), im = read(depth);
  const auto *x = std::get_if<double>(&re.value), *y = std::get_if<double>(&im.value);
  if (x == nullptr || y == nullptr) refuse_call("the parts of a complex number are not floats");
  return {std::complex(*x, *y)};
}

aten::Argument ArgumentReader::read_graph(int64_t id) const {
  if (id < 0 || static_cast<size_t>(id) >= builder_.finished.size())
    refuse_call(fmt::format("there is no nested graph {}", id));
  return {builder_.finished[static_cast<size_t>(id)]};
}

}  // namespace ingot::core::api
