// SPDX-License-Identifier: Apache-2.0
// Functions that the rows of core/*.def have beside those of composites.def.
#include <algorithm>

#include "importers/aten/converters/building.h"
#include "importers/aten/converters/composites/evaluation.h"
#include "importers/aten/converters/parts.h"
#include "importers/aten/converters/random.h"
#include "ops/generate.h"
#include "ops/size_condition.h"

namespace ingot::core::aten {
namespace {

using CoreValues = std::span<const Argument>;

Argument as_list(Evaluation& evaluation, CoreValues values) {
  const Argument& value = value_at(evaluation, values, 0);
  return std::holds_alternative<ArgumentList>(value.value) ? value : Argument{ArgumentList{value}};
}
Argument letters(Evaluation& evaluation, CoreValues values) {
  const auto* text = std::get_if<std::string>(&value_at(evaluation, values, 0).value);
  evaluation.call().require(text != nullptr, "an argument that is not text");
  ArgumentList list;
  for (const char letter : *text) list.push_back({std::string(1, letter)});
  return {std::move(list)};
}
// Sorted and not negative: those of a list or a number, or all of them for None and an empty list. A tensor
// without dims accepts 0 and -1, and has none.
Argument axes(Evaluation& evaluation, CoreValues values) {
  const auto rank = static_cast<int64_t>(evaluation.shape(value_at(evaluation, values, 0)).size());
  const Argument& given = value_at(evaluation, values, 1);
  const auto* list = std::get_if<ArgumentList>(&given.value);
  std::vector<int64_t> found;
  for (const Argument& item : list != nullptr ? *list : ArgumentList{given}) {
    if (std::holds_alternative<None>(item.value)) continue;
    found.push_back(checked_axis(evaluation, evaluation.integer(item), std::max<int64_t>(rank, 1)));
    evaluation.call().require(std::ranges::count(found, found.back()) == 1, "a dim that is given twice");
  }
  if (found.empty()) found = all_axes(static_cast<size_t>(rank));
  std::ranges::sort(found);
  ArgumentList result;
  for (const int64_t axis : found)
    if (rank > 0) result.push_back({axis});
  return {std::move(result)};
}
// None where nothing is recorded.
Argument recorded_shape(Evaluation& evaluation, CoreValues values) {
  Call& call = evaluation.call();
  const size_t index = result_index(evaluation, values);
  if (index >= call.result_count() || !call.node().outputs[index]) return {None{}};
  const Value& result = call.scope().value(*call.node().outputs[index]);
  return result.kind == ValueKind::kTensor ? size_list(evaluation, result.tensor.shape) : Argument{None{}};
}
Argument halvings_of(Evaluation& evaluation, CoreValues values) {
  return {halvings(evaluation.call().graph(), evaluation.size_of(value_at(evaluation, values, 0)))};
}
Argument largest_prime(Evaluation& evaluation, CoreValues values) {
  int64_t rest = evaluation.integer(value_at(evaluation, values, 0)), largest = 1;
  for (int64_t factor = 2; factor * factor <= rest; ++factor) {
    for (; rest % factor == 0; rest /= factor) largest = factor;
  }
  return {std::max(rest, largest)};
}

// The matrix whose transpose this is; None if it was not made so.
Argument transposed_from(Evaluation& evaluation, CoreValues values) {
  const core::Value* x = evaluation.tensor(value_at(evaluation, values, 0));
  const bool is_turned = x->type.rank() == 2 && x->producer != nullptr && x->producer->op == &ops::transpose;
  return is_turned ? Argument{evaluation.scope().bind(x->producer->operands[0])} : Argument{None{}};
}
// What was expanded to this; None if it was not made so.
Argument expanded_from(Evaluation& evaluation, CoreValues values) {
  const core::Node* producer = evaluation.tensor(value_at(evaluation, values, 0))->producer;
  const bool is_wide = producer != nullptr && producer->op == &ops::expand;
  return is_wide ? Argument{evaluation.scope().bind(producer->operands[0])} : Argument{None{}};
}
// A size that each run compares with another one; their names tell what differs.
Argument checked_size(Evaluation& evaluation, CoreValues values) {
  const Dim wanted = evaluation.size_of(value_at(evaluation, values, 0)),
            given = evaluation.size_of(value_at(evaluation, values, 1));
  const auto* what = std::get_if<std::string>(&value_at(evaluation, values, 2).value);
  if (wanted != given)
    ops::add_check(evaluation.call().graph(), CheckKind::kBounds,
                   compare(Predicate::Kind::kEqual, given, wanted), what == nullptr ? "" : *what);
  return values[0];
}
Argument drawn_bits(Evaluation& evaluation, CoreValues values) {
  Shape shape;
  for (const Argument& size : evaluation.list_in(value_at(evaluation, values, 0)))
    shape.push_back(evaluation.size_of(size));
  return {evaluation.scope().bind(random_bits(evaluation.call(), shape).value())};
}
// What a tensor or a number is as a tensor of a dtype.
Argument operand_in(Evaluation& evaluation, CoreValues values) {
  const auto* dtype = std::get_if<DType>(&value_at(evaluation, values, 1).value);
  evaluation.call().require(dtype != nullptr, "a dtype that Ingot does not support");
  if (is_complex(*dtype)) evaluation.call().refuse("complex numbers");
  return {evaluation.scope().bind(evaluation.operand(values[0], *dtype))};
}
// With the bits that memory holds; what a half cannot hold stays as it is.
double rounded_to(DType dtype, double number) {
  const Tensor element = make_tensor(dtype, {});
  write_double(element.view(), {}, number);
  const double rounded = read_double(element.view(), {});
  return std::isinf(rounded) ? number : rounded;
}
// The same; numbers of f16 and bf16 have the bits that memory holds.
Argument stored_in(Evaluation& evaluation, CoreValues values) {
  Argument made = operand_in(evaluation, values);
  if (evaluation.is_tensor(values[0])) return made;
  const core::Value* number = evaluation.tensor(made);
  core::Node* node = number->producer;  // just made, and read by nothing
  if (!is_half(number->type.dtype) || node->op != &ops::full) return made;
  auto full = node->attributes<ops::Full>();
  full.value = rounded_to(full.dtype, full.value);
  node->values = to_values(full);
  return made;
}
// A number that is an attribute, with the bits that memory holds of it in the dtype.
Argument stored_number(Evaluation& evaluation, CoreValues values) {
  const Argument& value = value_at(evaluation, values, 0);
  const auto* dtype = std::get_if<DType>(&value_at(evaluation, values, 1).value);
  const auto* number = std::get_if<double>(&value.value);
  return number == nullptr || dtype == nullptr || !is_half(*dtype) ? value
                                                                   : Argument{rounded_to(*dtype, *number)};
}
bool is_complex_number(const Argument& value) {
  return std::holds_alternative<std::complex<double>>(value.value);
}
Argument is_complex_literal(Evaluation& evaluation, CoreValues values) {
  return {is_complex_number(value_at(evaluation, values, 0))};
}
// The value of a complex number; tensors are rejected.
std::complex<double> complex_number(Evaluation& evaluation, CoreValues values) {
  const Argument& value = value_at(evaluation, values, 0);
  evaluation.call().require(is_complex_number(value), "an argument that is not a complex number");
  return std::get<std::complex<double>>(value.value);
}
Argument real_of(Evaluation& evaluation, CoreValues values) {
  return {complex_number(evaluation, values).real()};
}
Argument imaginary_of(Evaluation& evaluation, CoreValues values) {
  return {complex_number(evaluation, values).imag()};
}
// The tensor whose parts a list has: the only one, or a complex tensor of two, which only a result can be.
Argument joined_parts(Evaluation& evaluation, CoreValues values) {
  const ArgumentList& parts = evaluation.list_in(value_at(evaluation, values, 0));
  evaluation.call().require(parts.size() == 1 || parts.size() == 2, "parts that are neither one nor two");
  if (parts.size() == 1) return parts[0];
  return {evaluation.scope().bind(
      joined(evaluation.call(), evaluation.tensor(parts[0]), evaluation.tensor(parts[1])))};
}
// A number; None if it depends on data or sizes, or is a tensor.
Argument known_value(Evaluation& evaluation, CoreValues values) {
  const Argument& value = value_at(evaluation, values, 0);
  if (!std::holds_alternative<ValueId>(value.value)) return value;
  const auto number = evaluation.known_number(value);
  return number ? Argument{*number} : Argument{None{}};
}

constexpr NamedFunction kCoreFunctions[] = {
    {"as_list", as_list},
    {"axes", axes},
    {"checked_size", checked_size},
    {"expanded_from", expanded_from},
    {"halvings", halvings_of},
    {"imag_of", imaginary_of},
    {"is_complex_number", is_complex_literal},
    {"joined_parts", joined_parts},
    {"known", known_value},
    {"largest_prime", largest_prime},
    {"letters", letters},
    {"operand", operand_in},
    {"random_bits", drawn_bits},
    {"real_of", real_of},
    {"recorded_shape", recorded_shape},
    {"stored", stored_in},
    {"stored_number", stored_number},
    {"transposed_from", transposed_from},
};

}  // namespace

std::span<const NamedFunction> core_functions() { return kCoreFunctions; }

}  // namespace ingot::core::aten
