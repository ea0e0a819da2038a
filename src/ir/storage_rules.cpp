// SPDX-License-Identifier: Apache-2.0
#include "ir/storage_rules.h"

#include <algorithm>

#include <fmt/core.h>

#include "types/layout_rules.h"

namespace ingot::core {
namespace {

std::string typed(const Value& value) { return fmt::format("%{}: {}", value.name, to_string(value.type)); }

bool is_row_major(const Value& value) { return value.type.layout.is_row_major(); }

std::string literal_problem(const Tensor& literal, const Value& result) {
  Shape shape;
  for (const int64_t size : literal.shape) shape.emplace_back(size);
  const TensorType type{literal.dtype, std::move(shape), {}};
  if (result.type == type) return "";
  return fmt::format("{} has a literal of type {}", typed(result), to_string(type));
}

std::string in_place_problem(const Node& node) {
  if (node.operands.empty() || node.results.empty() || node.operands[0] == nullptr) return "";
  const Value &from = *node.operands[0], &to = *node.results[0];
  if (from.type == to.type) return "";
  return fmt::format("{} is written in place of {}, but their types differ", typed(to), typed(from));
}

std::string routine_problem(const Node& node) {
  for (const auto* values : {&node.operands, &node.results}) {
    for (const Value* value : *values) {
      if (value == nullptr || is_row_major(*value)) continue;
      return fmt::format("{} of a routine is not row-major", typed(*value));
    }
  }
  return "";
}

std::string source_problem(const Node& node) {
  const Value& result = *node.results[0];
  if (node.literal != nullptr) return literal_problem(*node.literal, result);
  return "";
}

std::string port_problem(const Value& value, std::string_view kind) {
  return is_row_major(value) ? "" : fmt::format("the {} {} is not row-major", kind, typed(value));
}

std::string update_problem(const Update& update) {
  const auto [target, value] = update;
  std::string problem = port_problem(*target, "state");
  if (!problem.empty() || value->type == target->type) return problem;
  return fmt::format("{} becomes the value of {}, but their types differ", typed(*value), typed(*target));
}

}  // namespace

std::string storage_problem(const TensorType& type) {
  if (is_bijection(type.layout, type.rank())) return "";
  return fmt::format("the layout {} does not store each element of {} dims exactly once",
                     to_string(type.layout), type.rank());
}

std::string storage_problem(const Node& node) {
  for (const Value* result : node.results) {
    const std::string problem = storage_problem(result->type);
    if (!problem.empty()) return fmt::format("%{}: {}", result->name, problem);
  }
  if (node.op->traits.has(Trait::kInPlace)) return in_place_problem(node);
  if (!node.op->routine.empty()) return routine_problem(node);
  return node.op->traits.has(Trait::kSource) ? source_problem(node) : "";
}

std::string port_problem(const Graph& graph, OutputLayouts layouts) {
  for (const Value* input : graph.inputs()) {
    if (std::string problem = port_problem(*input, "input"); !problem.empty()) return problem;
  }
  for (const Value* output : graph.outputs) {
    if (layouts == OutputLayouts::kAny) break;
    if (std::string problem = port_problem(*output, "output"); !problem.empty()) return problem;
  }
  for (const Update& update : graph.updates) {
    if (std::string problem = update_problem(update); !problem.empty()) return problem;
  }
  return "";
}

std::string region_problem(const Graph& region) {
  constexpr Traits kForeign = Trait::kSource | Trait::kSideEffect | Trait::kControlFlow | Trait::kFused;
  if (!region.updates.empty()) return "a fused region updates state";
  for (const auto& node : region.nodes()) {
    if ((node->op->traits.bits & kForeign.bits) != 0 || !node->op->routine.empty())
      return fmt::format("a fused region holds {}", node->op->name);
    if (!node->op->traits.has(Trait::kInPlace)) continue;
    const bool is_last =
        std::ranges::count(region.outputs, node->results[0]) == 1 && node->results[0]->users.empty();
    if (node->operands[0]->producer != nullptr || !is_last)
      return fmt::format("a fused region writes in place of, or reads, what it computes itself: {}",
                         node->op->name);
  }
  return "";
}

}  // namespace ingot::core
