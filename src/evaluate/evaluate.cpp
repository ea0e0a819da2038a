// SPDX-License-Identifier: Apache-2.0
#include "evaluate/evaluate.h"

#include <fmt/format.h>

#include <cstring>
#include <unordered_map>

#include "ir/bound_symbol.h"
#include "ops/model_source.h"
#include "support/error.h"
#include "types/linear_dim.h"

namespace ingot::core {
namespace {

[[noreturn]] void fail_input(const Value& input, const std::string& message) {
  throw UserError("INGOT-U411", fmt::format("input '{}': {}", input.name, message));
}

void check_type(const Value& input, const Tensor& tensor) {
  const TensorType& type = input.type;
  if (tensor.dtype != type.dtype)
    fail_input(input, fmt::format("expected {}, got {}", name(type.dtype), name(tensor.dtype)));
  if (tensor.shape.size() != type.rank())
    fail_input(input, fmt::format("expected {} dims, got {}", type.rank(), tensor.shape.size()));
}

// First by the dims that are a symbol, then by those that it follows from.
void bind_symbols(const std::vector<Value*>& inputs, std::span<const Tensor> tensors, SymbolValues& symbols) {
  for (const bool binds_alone : {true, false}) {
    for (size_t k = 0; k < inputs.size(); ++k) {
      const Shape& shape = inputs[k]->type.shape;
      for (size_t i = 0; i < shape.size(); ++i) {
        const auto linear = linear_dim(shape[i]);
        if (linear && shape[i].is_symbol() == binds_alone)
          symbols.emplace(linear->symbol, linear->symbol_of(tensors[k].shape[i]));
      }
    }
  }
}

void check_sizes(const Value& input, const Tensor& tensor, const SymbolValues& symbols) {
  for (size_t i = 0; i < tensor.shape.size(); ++i) {
    const int64_t expected = evaluate(input.type.shape[i], symbols);
    if (expected != tensor.shape[i])
      fail_input(input, fmt::format("dim {} is {}, expected {} = {}", i, tensor.shape[i],
                                    input.type.shape[i].to_string(), expected));
  }
}

void check_ranges(const SymbolTable& table, const SymbolValues& symbols) {
  for (const auto& [symbol, value] : symbols) {
    const auto found = table.find(symbol);
    if (found == table.end()) continue;
    const DimRange& range = found->second.range;
    if (value < range.min || value > range.max)
      throw UserError("INGOT-U412",
                      fmt::format("size {} = {} is outside of {}..{}", symbol, value, range.min, range.max));
  }
}

const Tensor& named(const TensorMap& weights, const Node& node) {
  const auto name = node.attributes<ops::ModelSource>().name;
  const auto found = weights.find(name);
  if (found == weights.end())
    throw UserError("INGOT-U413", fmt::format("no value was given for {} '{}'", node.op->name, name));
  return found->second;
}

using Values = std::unordered_map<const Value*, Tensor>;

void evaluate_source_or_node(const Node& node, const TensorMap& weights, const SymbolValues& symbols,
                             Values& values) {
  if (node.op->traits.has(Trait::kSource)) {
    values.emplace(node.results[0], node.literal ? *node.literal : named(weights, node));
    return;
  }
  std::vector<const Tensor*> operands;
  for (const Value* operand : node.operands) operands.push_back(operand ? &values.at(operand) : nullptr);
  std::vector<Tensor> results = node.op->traits.has(Trait::kControlFlow)
                                    ? evaluate_control_flow(node, operands, weights, symbols)
                                    : evaluate_node(node, operands, symbols);
  for (size_t i = 0; i < results.size(); ++i) values.insert_or_assign(node.results[i], std::move(results[i]));
}

// The value of the symbol that a node binds.
int64_t bound_value(const Graph& graph, const std::string& symbol, const Tensor& size,
                    const SymbolValues& symbols) {
  const int64_t value = read_integer(size.view(), {});
  const auto info = graph.symbols.find(symbol);  // of an outer graph if it is not here
  const bool has_limit = info != graph.symbols.end() && info->second.upper_bound;
  const int64_t limit = has_limit ? evaluate(*info->second.upper_bound, symbols) : INT64_MAX;
  const int64_t least = info == graph.symbols.end() ? 0 : std::min<int64_t>(info->second.range.min, 0);
  if (value >= least && value <= limit) return value;
  throw UserError("INGOT-U311", fmt::format("computed the size {}, outside of {}..{}", value, least, limit));
}

// The name of a `state` node or mutable input.
std::string state_name(const Value& target) {
  return target.producer ? target.producer->attributes<ops::ModelSource>().name : target.name;
}

}  // namespace

Evaluation evaluate_with(const Graph& graph, std::span<const Tensor> inputs, const TensorMap& weights,
                         const SymbolValues& symbols) {
  Values values;
  SymbolValues bound = symbols;
  for (size_t i = 0; i < inputs.size(); ++i) values.emplace(graph.inputs()[i], inputs[i]);
  for (const auto& node : graph.nodes()) {
    evaluate_source_or_node(*node, weights, bound, values);
    if (const std::string symbol = bound_symbol(*node); !symbol.empty())
      bound.insert_or_assign(symbol, bound_value(graph, symbol, values.at(node->results[0]), bound));
  }
  Evaluation result;
  for (const Value* output : graph.outputs) result.outputs.push_back(values.at(output));
  for (const Update& update : graph.updates)
    result.updates.emplace(state_name(*update.target), values.at(update.value));
  return result;
}

Evaluation evaluate(const Graph& graph, std::span<const Tensor> inputs, const TensorMap& weights) {
  if (inputs.size() != graph.inputs().size())
    throw UserError("INGOT-U410",
                    fmt::format("expected {} inputs, got {}", graph.inputs().size(), inputs.size()));
  SymbolValues symbols;
  for (const auto& [name, info] : graph.symbols) {
    if (info.by_rank) symbols.emplace(name, info.by_rank->sizes.front());
  }
  for (size_t i = 0; i < inputs.size(); ++i) check_type(*graph.inputs()[i], inputs[i]);
  bind_symbols(graph.inputs(), inputs, symbols);
  for (size_t i = 0; i < inputs.size(); ++i) check_sizes(*graph.inputs()[i], inputs[i], symbols);
  check_ranges(graph.symbols, symbols);
  return evaluate_with(graph, inputs, weights, symbols);
}

}  // namespace ingot::core
