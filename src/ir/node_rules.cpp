// SPDX-License-Identifier: Apache-2.0
#include "ir/node_rules.h"

#include <fmt/core.h>

#include <algorithm>

#include "ir/control_flow.h"
#include "ir/storage_rules.h"

namespace ingot::core {
namespace {

const Operand* rule_for(const Op& op, size_t index) {
  if (index < op.operands.size()) return &op.operands[index];
  const bool repeats = !op.operands.empty() && op.operands.back().variadic;
  return repeats ? &op.operands.back() : nullptr;
}

}  // namespace

std::string operand_problem(const Op& op, std::span<Value* const> operands) {
  for (size_t i = 0; i < operands.size(); ++i) {
    const Operand* rule = rule_for(op, i);
    if (rule == nullptr) {
      return fmt::format("{} takes {} operand{}, not {}", op.name, op.operands.size(),
                         op.operands.size() == 1 ? "" : "s", operands.size());
    }
    if (operands[i] == nullptr) {
      if (!rule->optional) return fmt::format("operand '{}' of {} is missing", rule->name, op.name);
    } else if (!contains(rule->dtypes, operands[i]->type.dtype)) {
      return fmt::format("operand '{}' of {} is {}, and must have {}", rule->name, op.name,
                         name(operands[i]->type.dtype), name(rule->dtypes));
    }
  }
  for (size_t i = operands.size(); i < op.operands.size(); ++i) {
    const Operand& rule = op.operands[i];
    if (!rule.optional && !rule.variadic) {
      return fmt::format("operand '{}' of {} is missing", rule.name, op.name);
    }
  }
  return "";
}

std::string attribute_problem(const Op& op, std::span<const AttributeValue> values) {
  const AttributeValues defaults = op.attributes.defaults();
  if (values.size() != defaults.size()) {
    return fmt::format("{} has {} attributes, not {}", op.name, defaults.size(), values.size());
  }
  for (size_t i = 0; i < values.size(); ++i) {
    if (values[i].index() != defaults[i].index()) {
      return fmt::format("attribute '{}' of {} has the wrong kind", op.attributes.names()[i], op.name);
    }
  }
  return "";
}

std::string nested_graph_problem(const Node& node, std::span<const TensorType> results) {
  const bool is_fused = node.op->traits.has(Trait::kFused);
  if (!is_fused && !node.op->traits.has(Trait::kControlFlow)) {
    return node.graphs.empty() ? "" : fmt::format("{} cannot have nested graphs", node.op->name);
  }
  if (!is_fused) return control_flow_problem(node, results);
  if (node.graphs.size() != 1) return fmt::format("{} must have exactly one graph", node.op->name);
  const Graph& graph = *node.graphs[0];
  if (graph.inputs().size() != node.operands.size()) {
    return fmt::format("{} has {} operands, but its graph has {} inputs", node.op->name, node.operands.size(),
                       graph.inputs().size());
  }
  for (size_t i = 0; i < node.operands.size(); ++i) {
    if (node.operands[i] == nullptr || graph.inputs()[i]->type != node.operands[i]->type) {
      return fmt::format("operand {} of {} differs in type from the input of its graph", i, node.op->name);
    }
  }
  const auto same_type = [](const Value* output, const TensorType& type) { return output->type == type; };
  if (!std::ranges::equal(graph.outputs, results, same_type)) {
    return fmt::format("the results of {} differ in type from the outputs of its graph", node.op->name);
  }
  return region_problem(graph);
}

std::string update_problem(const Graph& graph, size_t index) {
  const auto [target, value] = graph.updates[index];
  const Node* source = target->producer;
  if (source != nullptr && (!source->op->traits.has(Trait::kSource) || source->literal != nullptr)) {
    return fmt::format("%{} is updated, but is neither state nor an input", target->name);
  }
  for (size_t i = 0; i < index; ++i) {
    if (graph.updates[i].target == target) return fmt::format("%{} is updated twice", target->name);
  }
  if (value->type.dtype != target->type.dtype || value->type.shape != target->type.shape) {
    return fmt::format("%{} is {}, but its new value is {}", target->name, to_string(target->type),
                       to_string(value->type));
  }
  return "";
}

}  // namespace ingot::core
