// SPDX-License-Identifier: Apache-2.0
#include "importers/onnx/importer.h"

#include <algorithm>

#include <fmt/core.h>

#include "importers/onnx/converters/converters.h"
#include "importers/onnx/folding.h"
#include "importers/onnx/node_source.h"
#include "ops/model_source.h"
#include "ops/select.h"
#include "support/error.h"

namespace ingot::core::onnx {
namespace {

void require_at_most(size_t most, const NodeDef& node) {
  const auto is_given = [](const std::string& name) { return !name.empty(); };
  const size_t first = std::min(most, node.inputs.size());
  if (std::any_of(node.inputs.begin() + static_cast<std::ptrdiff_t>(first), node.inputs.end(), is_given))
    refuse_node(fmt::format("it has {} inputs, and {} takes at most {}", node.inputs.size(), node.op, most));
}

// Against files whose functions call each other many times.
constexpr size_t kMostNodes = size_t{1} << 17;

std::string label_of(const NodeDef& node, size_t index) {
  if (!node.name.empty()) return node.name;
  const auto named =
      std::ranges::find_if(node.outputs, [](const std::string& name) { return !name.empty(); });
  return named != node.outputs.end() ? *named : fmt::format("node {}", index);
}

std::string operator_of(const NodeDef& node) {
  return node.domain.empty() ? node.op : node.domain + "." + node.op;
}

// The same error, with the node that it is about. What an operator of ours rejects may be right in ONNX.
[[noreturn]] void rethrow_at(const Error& error, const NodeDef& node, const std::string& label) {
  ErrorDetails details = error.details();
  if (!details.node.empty() && details.message.starts_with("ONNX ")) throw;  // of a nested graph
  const bool is_own = details.code == "INGOT-U401";
  if (is_own) details.code = "INGOT-N541";
  details.message = fmt::format("ONNX {}: {}", operator_of(node), details.message);
  details.node = label;
  details.source_line = source_of(node).to_string();
  if (error.kind() == ErrorKind::kUnsupported || is_own) throw UnsupportedError(std::move(details));
  throw UserError(std::move(details));
}

// Floating-point tensors and quantized matrices are weights, which a refit can replace; numbers are
// constants.
bool may_be_weight(const Tensor& value) {
  constexpr size_t kMatrix = 2;
  if (value.dtype == DType::kI8) return value.shape.size() >= kMatrix;
  return is_floating(value.dtype) && !value.shape.empty();
}

const FunctionDef* find_function(const Model& model, const NodeDef& node) {
  const auto found = std::ranges::find_if(model.functions, [&](const FunctionDef& function) {
    return function.name == node.op && function.domain == node.domain;
  });
  return found == model.functions.end() ? nullptr : &*found;
}

// The body's node with the values that the call gives to its function's attributes.
NodeDef with_values(NodeDef node, const NodeDef& call, const FunctionDef& function) {
  const auto value_of = [&](const std::string& name) -> const AttributeDef* {
    for (const auto* attributes : {&call.attributes, &function.defaults}) {
      const auto found = std::ranges::find(*attributes, name, &AttributeDef::name);
      if (found != attributes->end()) return &*found;
    }
    return nullptr;
  };
  std::vector<AttributeDef> attributes;
  for (AttributeDef& attribute : node.attributes) {
    if (attribute.parameter.empty()) {
      attributes.push_back(std::move(attribute));
    } else if (const AttributeDef* value = value_of(attribute.parameter)) {
      attributes.push_back(*value);
      attributes.back().name = attribute.name;
    }
  }
  node.attributes = std::move(attributes);
  return node;
}

}  // namespace

void GraphScope::add_initializer(const std::string& name, const Tensor& value) {
  new_slot(name).initializer = value;
}

void GraphScope::import_nodes(const std::vector<NodeDef>& nodes) {
  for (size_t i = 0; i < nodes.size(); ++i) import_node(nodes[i], i);
}

void GraphScope::import_node(const NodeDef& node, size_t index) {
  const std::string label = label_of(node, index);
  try {
    if (++state_.nodes > kMostNodes) refuse("the model has too many nodes");
    graph().current_name = label;
    graph().current_source = source_of(node);
    convert(node);
  } catch (const UserError& error) {
    rethrow_at(error, node, label);
  } catch (const UnsupportedError& error) {
    rethrow_at(error, node, label);
  }
}

void GraphScope::convert(const NodeDef& node) {
  if (const FunctionDef* function = find_function(state_.model.model, node))
    return call_function(*function, node);
  const Converter* converter = node.domain.empty() ? find_converter(node.op) : nullptr;
  if (converter == nullptr) refuse("Ingot has no such operator");
  const auto opset = opsets_.find(node.domain);
  if (opset == opsets_.end())
    refuse_node(fmt::format("the model imports no operators of domain '{}'", node.domain));
  if (opset->second < converter->since)
    refuse(fmt::format("opset {}; Ingot follows its rules of opset {} and later", opset->second,
                       converter->since));
  require_at_most(most_inputs(node.op), node);
  Call call(*this, node, opset->second, converter->op);
  if (std::optional<Sizes> folded = fold_sizes(call, *converter)) return call.give_sizes(std::move(*folded));
  converter->convert(call);
}

void GraphScope::call_function(const FunctionDef& function, const NodeDef& node) {
  if (++state_.depth > kMostNested) refuse("functions call each other too deep");
  require_at_most(function.inputs.size(), node);
  GraphScope body(state_, function.opsets, graph_);
  for (size_t i = 0; i < function.inputs.size() && i < node.inputs.size(); ++i) {
    if (!node.inputs[i].empty()) body.slots_[function.inputs[i]] = slot(node.inputs[i]);
  }
  size_t index = 0;
  for (const NodeDef& inner : function.nodes) body.import_node(with_values(inner, node, function), index++);
  for (size_t i = 0; i < function.outputs.size() && i < node.outputs.size(); ++i) {
    if (!node.outputs[i].empty()) new_slot(node.outputs[i]) = body.slot(function.outputs[i]);
  }
  --state_.depth;
}

void GraphScope::run(const GraphDef& nested, const std::vector<std::string>& outputs) {
  if (++state_.depth > kMostNested) refuse("graphs are nested too deep");
  if (nested.sparse_initializers > 0) refuse("sparse initializers");
  GraphScope body(state_, opsets_, graph_, this);
  for (const TensorDef& tensor : nested.initializers) body.add_initializer(tensor.name, read(tensor));
  body.import_nodes(nested.nodes);
  if (outputs.size() > nested.outputs.size()) refuse_node("it has more outputs than its graph");
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (!outputs[i].empty()) new_slot(outputs[i]) = body.slot(nested.outputs[i].name);
  }
  --state_.depth;
}

GraphScope::Slot& GraphScope::slot(const std::string& name) {
  const auto found = slots_.find(name);
  if (found != slots_.end()) return found->second;
  if (outer_ != nullptr) return outer_->slot(name);
  refuse_node(fmt::format("'{}' is used before a node computes it, or no node does", name));
}

GraphScope::Slot& GraphScope::new_slot(const std::string& name) {
  const auto [entry, is_new] = slots_.try_emplace(name);
  if (!is_new) refuse_node(fmt::format("'{}' is computed twice", name));
  return entry->second;
}

Value* GraphScope::tensor(const std::string& name) {
  Slot& found = slot(name);
  if (found.value == nullptr && found.sizes) found.value = to_value(graph(), *found.sizes);
  if (found.value == nullptr && found.initializer) found.value = stored(name, *found.initializer);
  return found.value;
}

// Elements of four bits are bytes within their range, which converters and passes see.
Value* GraphScope::stored(const std::string& name, const Tensor& value) {
  if (bit_width(value.dtype) == 4) {
    const bool is_signed = value.dtype == DType::kI4;
    Value* limited = graph().call(ops::clamp, {stored(name, widened(value))},
                                  ops::Clamp{is_signed ? -8.0 : 0.0, is_signed ? 7.0 : 15.0});
    state_.four_bits.emplace(limited, value.dtype);
    return limited;
  }
  if (!may_be_weight(value) || state_.weights_are_constants) return graph().add_constant(value);
  std::vector<aten::WeightSource>& weights = state_.result.weights;
  const auto number = static_cast<int64_t>(weights.size());
  weights.push_back({.name = name, .value = {value.view(), value.data}});
  return graph().call(
      ops::weight, {},
      ops::ModelSource{name, value.dtype, Shape(value.shape.begin(), value.shape.end()), {}, number});
}

DType GraphScope::element_type(const Value* value) {
  const auto found = state_.four_bits.find(value);
  return found == state_.four_bits.end() ? value->type.dtype : found->second;
}

std::optional<Tensor> GraphScope::literal(const std::string& name) {
  const Slot& found = slot(name);
  if (found.initializer) return found.initializer;
  if (found.sizes) return found.sizes->is_constant() ? std::optional(to_tensor(*found.sizes)) : std::nullopt;
  return state_.literals.find(found.value);
}

std::optional<Sizes> GraphScope::sizes(const std::string& name) {
  const Slot& found = slot(name);
  if (found.sizes) return found.sizes;
  if (found.value != nullptr && !may_be_sizes(found.value->type.dtype)) return std::nullopt;
  const std::optional<Tensor> known = literal(name);
  return known ? sizes_of(*known) : std::nullopt;
}

void GraphScope::give(const std::string& name, Value* value) { new_slot(name).value = value; }

void GraphScope::give(const std::string& name, Sizes sizes) { new_slot(name).sizes = std::move(sizes); }

}  // namespace ingot::core::onnx
