// SPDX-License-Identifier: Apache-2.0
#include "importers/onnx/call.h"

#include <algorithm>

#include <fmt/core.h>

#include "support/error.h"
#include "support/utf8.h"

namespace ingot::core::onnx {
namespace {

std::vector<double> elements_of(const Tensor& tensor) {
  TensorView flat = tensor.view();
  flat.shape = {tensor.elements()};
  flat.strides = {1};
  std::vector<double> elements;
  for (int64_t i = 0; i < flat.shape[0]; ++i) elements.push_back(read_double(flat, {{i}}));
  return elements;
}

}  // namespace

void refuse_node(std::string problem) { throw UserError("INGOT-U543", std::move(problem)); }

Value* Call::tensor(size_t input) {
  if (!has(input)) refuse_node(fmt::format("input {} is missing", input));
  return scope_.tensor(node_.inputs[input]);
}

Value* Call::optional_tensor(size_t input) { return has(input) ? tensor(input) : nullptr; }

std::vector<Value*> Call::tensors() {
  std::vector<Value*> values;
  for (size_t i = 0; i < inputs(); ++i) values.push_back(tensor(i));
  if (values.empty()) refuse_node("it has no inputs");
  return values;
}

std::optional<Sizes> Call::sizes(size_t input) {
  if (!has(input)) refuse_node(fmt::format("input {} is missing", input));
  return scope_.sizes(node_.inputs[input]);
}

std::vector<Dim> Call::dims(size_t input) {
  std::optional<Sizes> known = sizes(input);
  if (!known) refuse(fmt::format("'{}' depends on values of a run, not on sizes alone", node_.inputs[input]));
  if (known->shape.size() > 1) refuse_node(fmt::format("input {} has more than one dim", input));
  return std::move(known->elements);
}

std::vector<int64_t> Call::integers(size_t input) {
  std::vector<int64_t> values;
  for (const Dim& dim : dims(input)) {
    if (!dim.is_constant())
      refuse(fmt::format("'{}' is {}, which changes with the sizes of inputs", node_.inputs[input],
                         dim.to_string()));
    values.push_back(*dim.constant());
  }
  return values;
}

int64_t Call::integer(size_t input) {
  const std::vector<int64_t> values = integers(input);
  if (values.size() != 1) refuse_node(fmt::format("input {} is not a single number", input));
  return values[0];
}

std::optional<Tensor> Call::literal(size_t input) {
  if (!has(input)) refuse_node(fmt::format("input {} is missing", input));
  return scope_.literal(node_.inputs[input]);
}

std::vector<double> Call::numbers(size_t input) {
  const std::optional<Tensor> known = literal(input);
  if (!known) refuse(fmt::format("'{}' is not a constant", node_.inputs[input]));
  return elements_of(*known);
}

double Call::number(size_t input) {
  const std::vector<double> values = numbers(input);
  if (values.size() != 1) refuse_node(fmt::format("input {} is not a single number", input));
  return values[0];
}

const AttributeDef* Call::find(std::string_view name) const {
  const auto found = std::ranges::find(node_.attributes, name, &AttributeDef::name);
  return found == node_.attributes.end() ? nullptr : &*found;
}

int64_t Call::attribute_integer(std::string_view name, int64_t otherwise) const {
  const AttributeDef* found = find(name);
  return found == nullptr ? otherwise : found->integer;
}

double Call::attribute_number(std::string_view name, double otherwise) const {
  const AttributeDef* found = find(name);
  return found == nullptr ? otherwise : found->number;
}

std::string Call::attribute_text(std::string_view name, const char* otherwise) const {
  const AttributeDef* found = find(name);
  if (found == nullptr) return otherwise;
  if (!is_utf8(found->text)) refuse_node(fmt::format("the attribute '{}' is not UTF-8", name));
  return found->text;
}

std::vector<int64_t> Call::attributes(std::string_view name) const {
  const AttributeDef* found = find(name);
  return found == nullptr ? std::vector<int64_t>{} : found->integers;
}

std::vector<double> Call::attribute_numbers(std::string_view name) const {
  const AttributeDef* found = find(name);
  return found == nullptr ? std::vector<double>{} : found->numbers;
}

std::vector<std::string> Call::attribute_texts(std::string_view name) const {
  const AttributeDef* found = find(name);
  return found == nullptr ? std::vector<std::string>{} : found->texts;
}

const TensorDef* Call::attribute_tensor(std::string_view name) const {
  const AttributeDef* found = find(name);
  return found == nullptr ? nullptr : found->tensor.get();
}

const GraphDef& Call::attribute_graph(std::string_view name) const {
  const AttributeDef* found = find(name);
  if (found == nullptr || found->graph == nullptr) refuse_node(fmt::format("it has no graph '{}'", name));
  return *found->graph;
}

size_t Call::axis(int64_t given, size_t rank) const {
  const auto dims = static_cast<int64_t>(rank);
  if (given < -dims || given >= dims)
    refuse_node(fmt::format("axis {} of a tensor with {} dims", given, rank));
  return static_cast<size_t>(given < 0 ? given + dims : given);
}

std::vector<size_t> Call::axes(const std::vector<int64_t>& given, size_t rank) const {
  std::vector<size_t> axes;
  for (const int64_t each : given) {
    axes.push_back(axis(each, rank));
    if (std::ranges::count(axes, axes.back()) > 1) refuse_node(fmt::format("axis {} twice", each));
  }
  return axes;
}

std::optional<std::vector<int64_t>> Call::given_integers(std::string_view attribute, size_t input) {
  if (has_attribute(attribute)) return attributes(attribute);
  if (has(input)) return integers(input);
  return std::nullopt;
}

void Call::give(size_t output, Value* result) {
  if (wants(output)) scope_.give(node_.outputs[output], result);
}

void Call::give_sizes(Sizes sizes) {
  if (wants(0)) scope_.give(node_.outputs[0], std::move(sizes));
}

}  // namespace ingot::core::onnx
