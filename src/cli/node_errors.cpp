// SPDX-License-Identifier: Apache-2.0
#include "cli/node_errors.h"

#include <algorithm>
#include <functional>
#include <nlohmann/json.hpp>
#include <span>

#include "cli/difference.h"

namespace ingot::cli {
namespace {

using Json = nlohmann::json;

// The last node that each step of an engine computes; null for steps of no node.
std::vector<Json> last_nodes(const Session& session) {
  const Json json = Json::parse(session.inspect());
  std::vector<Json> nodes;
  for (const Json& step : json["main"]["steps"]) {
    const Json& indices = step["nodes"];
    nodes.push_back(indices.empty() ? Json() : json["nodes"][indices.back().get<size_t>()]);
  }
  return nodes;
}

}  // namespace

const std::vector<Array>& NodeValues::record(Session& session) {
  const std::vector<Json> nodes = last_nodes(session);
  return session.run([&](size_t step, const ingot_tensor& tensor) {
    const Json& node = nodes.at(step);
    if (node.is_null()) return;
    const auto name = node["name"].get<std::string>(), op = node["op"].get<std::string>();
    if (op == "relayout" && values_.contains(name)) return;  // only stored in another way
    const Elements elements = elements_of(tensor);
    const char* first = static_cast<const char*>(elements.data);
    Value value{.op = op, .source = node["source"].get<std::string>(), .array = {}};
    value.array = {.name = name,
                   .dtype = tensor.dtype,
                   .shape = {tensor.shape, tensor.shape + tensor.rank},
                   .data = {first, first + elements.count * element_bits(tensor.dtype) / 8}};
    values_.insert_or_assign(name, std::move(value));  // of the steps for a node the last has its value
  });
}

const std::vector<Array>& NodeValues::compare_with(Session& reference) {
  const std::vector<Json> nodes = last_nodes(reference);
  return reference.run([&](size_t step, const ingot_tensor& tensor) {
    const auto found =
        nodes.at(step).is_null() ? values_.end() : values_.find(nodes[step]["name"].get<std::string>());
    if (found == values_.end()) return;
    Value& value = found->second;
    if (!std::ranges::equal(value.array.shape, std::span(tensor.shape, static_cast<size_t>(tensor.rank))))
      return;
    value.has_error = true;
    value.error = relative_error(elements_of(value.array), elements_of(tensor));
  });
}

std::vector<NodeError> NodeValues::worst() const {
  std::vector<NodeError> errors;
  for (const auto& [name, value] : values_) {
    if (value.has_error) errors.push_back({name, value.op, value.source, value.error});
  }
  std::ranges::stable_sort(errors, std::greater(), &NodeError::error);
  return errors;
}

}  // namespace ingot::cli
