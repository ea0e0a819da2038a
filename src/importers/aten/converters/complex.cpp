// SPDX-License-Identifier: Apache-2.0
// Calls with a complex operand, result or dtype. Most run the converter for reals on the parts: once for each
// part if they move or add elements, and once for each product of parts if they are linear in each operand.
#include "importers/aten/converters/complex.h"

#include <algorithm>
#include <unordered_map>

#include "importers/aten/converters/inner_scope.h"
#include "importers/aten/converters/parts.h"

namespace ingot::core::aten {
namespace {

enum Part { kReal, kImaginary };

bool is_complex_tensor(const Value& value) {
  return value.kind == ValueKind::kTensor && is_complex(value.tensor.dtype);
}

// Conditions and indices are the same for both parts.
bool selects(std::string_view name) {
  return name == "condition" || name == "mask" || name == "index" || name == "indices";
}

Argument part_argument(Call& call, InnerScope& scope, const NamedArgument& named, const Argument& argument,
                       Part part) {
  if (const auto* list = std::get_if<ArgumentList>(&argument.value)) {
    ArgumentList parts;
    for (const Argument& item : *list) parts.push_back(part_argument(call, scope, named, item, part));
    return {std::move(parts)};
  }
  if (const auto* dtype = std::get_if<DType>(&argument.value)) return {component_of(*dtype)};
  if (const auto* number = std::get_if<std::complex<double>>(&argument.value))
    return {part == kReal ? number->real() : number->imag()};
  const bool is_value = named.name == "other" || named.name == "self" || named.name == "value" ||
                        named.name == "fill_value" || named.name == "s";
  const bool is_number = std::holds_alternative<double>(argument.value) ||
                         std::holds_alternative<int64_t>(argument.value) ||
                         std::holds_alternative<bool>(argument.value);
  if (is_number && is_value && part == kImaginary) return {0.0};
  const auto* id = std::get_if<ValueId>(&argument.value);
  if (id == nullptr || call.scope().value(*id).kind != ValueKind::kTensor) return argument;
  core::Value* tensor = call.scope().tensor(*id);
  if (is_complex_tensor(call.scope().value(*id))) {
    const Parts parts = parts_of(call, tensor);
    tensor = (part == kReal ? parts.re : parts.im).value();
  } else if (part == kImaginary && !selects(named.name)) {
    tensor = filled(call, tensor->type.shape, 0, tensor->type.dtype);
  }
  return {scope.bind(tensor)};
}

// The results of the converter for reals on arguments that were replaced.
std::vector<core::Value*> run_real(Call& call, InnerScope& scope, Node node) {
  std::vector<std::optional<ValueId>> results(node.outputs.size());
  for (size_t i = 0; i < results.size(); ++i) {
    if (node.outputs[i]) results[i] = scope.expect(call.scope().value(*node.outputs[i]).tensor);
  }
  node.outputs = results;
  const Converter* converter = find_converter(node.target);
  call.require(converter != nullptr, "complex numbers");
  Call real(scope, node);
  converter->convert(real);
  std::vector<core::Value*> values;
  for (const auto& id : results) values.push_back(id ? scope.result(*id) : nullptr);
  return values;
}

std::vector<core::Value*> run_part(Call& call, Part part) {
  InnerScope scope(call.scope());
  Node node = call.node();
  for (NamedArgument& named : node.arguments)
    named.argument = part_argument(call, scope, named, named.argument, part);
  return run_real(call, scope, std::move(node));
}

void give_joined(Call& call, size_t index, core::Value* re, core::Value* im) {
  const DType dtype = component_of(call.result_meta(index).dtype);
  call.give(index, joined(call, converted(call.graph(), re, dtype), converted(call.graph(), im, dtype)));
}
void give_parts_of(Call& call, const Term& re, const Term& im) {
  give_joined(call, 0, re.value(), im.value());
}

// Each part of the result follows from the same part of the operands. A real result has no second part.
void by_part(Call& call) {
  const std::vector<core::Value*> re = run_part(call, kReal);
  std::vector<core::Value*> im;
  for (size_t i = 0; i < re.size(); ++i) {
    if (re[i] == nullptr) continue;
    if (!is_complex(call.result_meta(i).dtype)) {
      call.give(i, re[i]);
      continue;
    }
    if (im.empty()) im = run_part(call, kImaginary);
    give_joined(call, i, re[i], im[i]);
  }
}

// Where a complex operand of a call stands: a tensor or a number.
struct Operand {
  Argument* argument;
  std::optional<Parts> parts;
  std::complex<double> number = {};

  Argument part(InnerScope& scope, Part which) const {
    if (parts) return {scope.bind((which == kReal ? parts->re : parts->im).value())};
    return {which == kReal ? number.real() : number.imag()};
  }
};
void find_operands(Call& call, Argument& argument, std::vector<Operand>& found) {
  if (auto* list = std::get_if<ArgumentList>(&argument.value)) {
    for (Argument& item : *list) find_operands(call, item, found);
  }
  if (const auto* number = std::get_if<std::complex<double>>(&argument.value))
    found.push_back({&argument, std::nullopt, *number});
  const auto* id = std::get_if<ValueId>(&argument.value);
  if (id != nullptr && is_complex_tensor(call.scope().value(*id)))
    found.push_back({&argument, parts_of(call, call.scope().tensor(*id))});
}

constexpr size_t kMostComplexOperands = 4;

// Linear in each operand: the sum over all choices of parts, with a factor i for each imaginary part.
Parts product_of_parts(Call& call, Node node) {
  std::vector<Operand> operands;
  for (NamedArgument& named : node.arguments) find_operands(call, named.argument, operands);
  call.require(!operands.empty() && operands.size() <= kMostComplexOperands, "so many complex operands");
  std::optional<Term> sums[2];
  for (size_t choice = 0; choice < size_t{1} << operands.size(); ++choice) {
    InnerScope scope(call.scope());
    size_t imaginary = 0;
    for (size_t i = 0; i < operands.size(); ++i) {
      const bool is_imaginary = ((choice >> i) & 1) != 0;
      *operands[i].argument = operands[i].part(scope, is_imaginary ? kImaginary : kReal);
      imaginary += is_imaginary ? 1 : 0;
    }
    const Term product(call, run_real(call, scope, node)[0]);
    std::optional<Term>& sum = sums[imaginary % 2];
    const bool negative = imaginary % 4 >= 2;
    if (!sum) {
      sum = negative ? -product : product;
    } else {
      sum = negative ? *sum - product : *sum + product;
    }
  }
  return {*sums[0], *sums[1]};
}
void linear_in_each(Call& call) {
  const Parts parts = product_of_parts(call, call.node());
  give_parts_of(call, parts.re, parts.im);
}

// A layer's bias is added to the product.
void complex_linear(Call& call) {
  Node product = call.node();
  for (NamedArgument& named : product.arguments) {
    if (named.name == "bias") named.argument = {None{}};
  }
  Parts result = product_of_parts(call, std::move(product));
  if (call.has("bias")) {
    const Parts bias = parts_of(call, call.pair("bias"));
    result = {result.re + bias.re, result.im + bias.im};
  }
  give_parts_of(call, result.re, result.im);
}

Parts self_parts(Call& call) { return parts_of(call, call.pair("self")); }

void view_as_complex(Call& call) { call.give(call.tensor("self")); }
void view_as_real(Call& call) { call.give(call.pair("self")); }
void real_part(Call& call) { call.give(self_parts(call).re.value()); }
void imaginary_part(Call& call) { call.give(self_parts(call).im.value()); }

void give_broadcast(Call& call, const Term& re, const Term& im) {
  const Shape& shape = call.result_meta().shape;
  give_joined(call, 0, expanded(call, re.value(), shape), expanded(call, im.value(), shape));
}
void from_parts(Call& call) { give_broadcast(call, operand_term(call, "real"), operand_term(call, "imag")); }
void complex_ones(Call& call) {
  const Term re(call, run_part(call, kReal)[0]);
  give_parts_of(call, re, filled_like(re, 0));
}

constexpr Converter kComplexConverters[] = {
#include "importers/aten/converters/complex.def"
};

// `values`: from an id to the value as the front end described it.
template <typename Values>
bool is_complex_argument(const Values& values, const Argument& argument) {
  if (const auto* dtype = std::get_if<DType>(&argument.value)) return is_complex(*dtype);
  if (std::holds_alternative<std::complex<double>>(argument.value)) return true;
  if (const auto* id = std::get_if<ValueId>(&argument.value)) return is_complex_tensor(values(*id));
  const auto* list = std::get_if<ArgumentList>(&argument.value);
  return list != nullptr &&
         std::ranges::any_of(*list, [&](const Argument& item) { return is_complex_argument(values, item); });
}
template <typename Values>
bool is_complex_node(const Values& values, const Node& node) {
  return std::ranges::any_of(
             node.arguments,
             [&](const auto& named) { return is_complex_argument(values, named.argument); }) ||
         std::ranges::any_of(
             node.outputs, [&](const auto& output) { return output && is_complex_tensor(values(*output)); });
}

}  // namespace

bool is_complex_call(const Graph& graph, const Node& node) {
  return is_complex_node([&](ValueId id) -> const Value& { return graph.values[id]; }, node);
}
bool is_complex_call(const Scope& scope, const Node& node) {
  return is_complex_node([&](ValueId id) -> const Value& { return scope.value(id); }, node);
}

const Converter* find_complex_converter(std::string_view target) {
  const auto found = std::ranges::find(kComplexConverters, target, &Converter::target);
  if (found != std::end(kComplexConverters)) return found;
  const std::span<const Converter> composites = complex_composites();
  const auto composite = std::ranges::lower_bound(composites, target, {}, &Converter::target);
  return composite == composites.end() || composite->target != target ? nullptr : &*composite;
}

}  // namespace ingot::core::aten
