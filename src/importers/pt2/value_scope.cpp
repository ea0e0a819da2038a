// SPDX-License-Identifier: Apache-2.0
#include "importers/pt2/value_scope.h"

#include <fmt/format.h>

#include "importers/pt2/tensor_meta.h"
#include "support/error.h"

namespace ingot::core::pt2 {

ValueScope::ValueScope(Json graph_json, aten::Graph& graph, ReadContext& context)
    : graph_(graph), context_(context) {
  add_facts(graph_json, "tensor_values", aten::ValueKind::kTensor);
  add_facts(graph_json, "sym_int_values", aten::ValueKind::kSymInt);
  add_facts(graph_json, "sym_float_values", aten::ValueKind::kSymFloat);
  add_facts(graph_json, "sym_bool_values", aten::ValueKind::kSymBool);
}

void ValueScope::add_facts(Json graph_json, std::string_view table, aten::ValueKind kind) {
  const std::optional<Json> values = graph_json.find(table);
  if (!values) return;
  for (const auto [name, json] : values->members())
    if (!facts_.emplace(name, Facts{kind, json}).second)
      throw UserError("INGOT-U506", fmt::format("'{}' is declared twice", name));
}

aten::ValueId ValueScope::add(aten::Value value) {
  const auto id = static_cast<aten::ValueId>(graph_.values.size());
  if (!defined_.emplace(value.name, id).second)
    throw UserError("INGOT-U506", fmt::format("'{}' is defined twice", value.name));
  graph_.values.push_back(std::move(value));
  return id;
}

aten::ValueId ValueScope::define(std::string_view name) {
  const auto found = facts_.find(name);
  if (found == facts_.end())
    throw UserError("INGOT-U506", fmt::format("the value '{}' is not declared", name));
  aten::Value value{.name = std::string(name), .kind = found->second.kind};
  if (value.kind == aten::ValueKind::kTensor) value.tensor = read_tensor_meta(found->second.json, context_);
  if (value.kind == aten::ValueKind::kSymInt) value.integer = read_dim(found->second.json, context_);
  return add(std::move(value));
}

aten::ValueId ValueScope::define_other(std::string_view name) {
  return add({.name = std::string(name), .kind = aten::ValueKind::kOther});
}

aten::ValueId ValueScope::use(std::string_view name) const {
  const auto found = defined_.find(std::string(name));
  if (found == defined_.end())
    throw UserError("INGOT-U506", fmt::format("'{}' is used before it is defined", name));
  return found->second;
}

}  // namespace ingot::core::pt2
