// SPDX-License-Identifier: Apache-2.0
#include "importers/aten/converters/call.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>

#include "importers/aten/program/node_error.h"
#include "ops/generate.h"
#include "ops/ops.h"
#include "ops/select.h"
#include "support/error.h"

namespace ingot::core::aten {

const Argument* Call::find(std::string_view name) const {
  const auto found = std::ranges::find(node_.arguments, name, &NamedArgument::name);
  return found == node_.arguments.end() ? nullptr : &found->argument;
}

const Argument& Call::get(std::string_view name) const {
  const Argument* argument = find(name);
  if (argument == nullptr) refuse(fmt::format("the call has no argument \"{}\"", name));
  return *argument;
}

void Call::refuse(const std::string& reason) const { refuse_node(node_, reason); }

bool Call::has(std::string_view name) const {
  const Argument* argument = find(name);
  return argument != nullptr && !std::holds_alternative<None>(argument->value);
}

bool Call::is_tensor(std::string_view name) const {
  const Argument* argument = find(name);
  const ValueId* id = argument == nullptr ? nullptr : std::get_if<ValueId>(&argument->value);
  return id != nullptr && scope_.value(*id).kind == ValueKind::kTensor;
}

const TensorMeta& Call::tensor_meta(std::string_view name) const {
  if (!is_tensor(name)) refuse(fmt::format("{} is not a tensor", name));
  return scope_.value(std::get<ValueId>(get(name).value)).tensor;
}

core::Value* Call::tensor_of(const Argument& argument, std::string_view name) {
  const ValueId* id = std::get_if<ValueId>(&argument.value);
  if (id == nullptr || scope_.value(*id).kind != ValueKind::kTensor)
    refuse(fmt::format("{} is not a tensor", name));
  if (is_complex(scope_.value(*id).tensor.dtype)) refuse("complex numbers");
  return scope_.tensor(*id);
}

core::Value* Call::pair(std::string_view name) {
  if (!is_complex(tensor_meta(name).dtype)) refuse(fmt::format("{} is not complex", name));
  return scope_.tensor(std::get<ValueId>(get(name).value));
}

core::Value* Call::tensor(std::string_view name) { return tensor_of(get(name), name); }

std::vector<core::Value*> Call::tensors(std::string_view name) {
  std::vector<core::Value*> values = optional_tensors(name);
  require(std::ranges::find(values, nullptr) == values.end(), fmt::format("no tensor in {}", name));
  return values;
}

std::vector<core::Value*> Call::optional_tensors(std::string_view name) {
  const auto* list = std::get_if<ArgumentList>(&get(name).value);
  if (list == nullptr) return {tensor(name)};
  std::vector<core::Value*> values;
  for (const Argument& item : *list) {
    values.push_back(std::holds_alternative<None>(item.value) ? nullptr : tensor_of(item, name));
  }
  return values;
}

std::optional<Dim> Call::dim_of(const Argument& argument) {
  if (const auto* integer = std::get_if<int64_t>(&argument.value)) return Dim(*integer);
  if (const auto* id = std::get_if<ValueId>(&argument.value)) return scope_.integer(*id);
  return std::nullopt;
}

Dim Call::dim(std::string_view name) {
  const std::optional<Dim> size = dim_of(get(name));
  if (!size) refuse(fmt::format("the value of {} is not known from the sizes of the inputs", name));
  return *size;
}

std::optional<std::vector<Dim>> Call::sizes_at(size_t position) {
  if (position >= node_.arguments.size()) return std::nullopt;
  const auto* list = std::get_if<ArgumentList>(&node_.arguments[position].argument.value);
  if (list == nullptr) return std::nullopt;
  std::vector<Dim> sizes;
  for (const Argument& item : *list) {
    const std::optional<Dim> size = dim_of(item);
    if (!size) return std::nullopt;
    sizes.push_back(*size);
  }
  return sizes;
}

std::vector<Dim> Call::dims(std::string_view name) {
  const auto* list = std::get_if<ArgumentList>(&get(name).value);
  if (list == nullptr) return {dim(name)};
  std::vector<Dim> sizes;
  for (const Argument& item : *list) {
    const std::optional<Dim> size = dim_of(item);
    if (!size) refuse(fmt::format("a size in {} is not known from the sizes of the inputs", name));
    sizes.push_back(*size);
  }
  return sizes;
}

int64_t Call::integer(std::string_view name) {
  const Dim size = dim(name);
  if (!size.is_constant())
    refuse(fmt::format("{} depends on the sizes of the inputs ({})", name, size.to_string()));
  return *size.constant();
}

std::vector<int64_t> Call::integers(std::string_view name) {
  std::vector<int64_t> values;
  for (const Dim& size : dims(name)) {
    if (!size.is_constant()) refuse(fmt::format("{} depends on the sizes of the inputs", name));
    values.push_back(*size.constant());
  }
  return values;
}

std::optional<double> Call::number_of(const Argument& argument) {
  if (const auto* value = std::get_if<double>(&argument.value)) return *value;
  if (const auto* value = std::get_if<bool>(&argument.value)) return *value ? 1 : 0;
  if (const auto* id = std::get_if<ValueId>(&argument.value)) {
    if (const auto value = scope_.number(*id)) return value;
  }
  const std::optional<Dim> size = dim_of(argument);
  return size && size->is_constant() ? std::optional(static_cast<double>(*size->constant())) : std::nullopt;
}

std::optional<double> Call::known_number(std::string_view name) { return number_of(get(name)); }

double Call::number(std::string_view name) {
  const std::optional<double> value = known_number(name);
  if (!value) refuse(fmt::format("the value of {} is not known now", name));
  return *value;
}

std::vector<double> Call::numbers(std::string_view name) {
  const auto* list = std::get_if<ArgumentList>(&get(name).value);
  if (list == nullptr) return {number(name)};
  std::vector<double> values;
  for (const Argument& item : *list) {
    const std::optional<double> value = number_of(item);
    if (!value) refuse(fmt::format("a value of {} is not known now", name));
    values.push_back(*value);
  }
  return values;
}

std::optional<Dim> Call::size_at(size_t position) {
  if (position >= node_.arguments.size()) return std::nullopt;
  return dim_of(node_.arguments[position].argument);
}

std::optional<double> Call::number_at(size_t position) {
  if (position >= node_.arguments.size()) return std::nullopt;
  return number_of(node_.arguments[position].argument);
}

core::Value* Call::real_of_sizes_at(size_t position) {
  if (position >= node_.arguments.size()) return nullptr;
  const auto* id = std::get_if<ValueId>(&node_.arguments[position].argument.value);
  return id == nullptr ? nullptr : scope_.real_of_sizes(*id);
}

bool Call::is_floating_number(std::string_view name) const {
  const Argument& argument = get(name);
  if (const auto* id = std::get_if<ValueId>(&argument.value))
    return scope_.value(*id).kind == ValueKind::kSymFloat;
  return std::holds_alternative<double>(argument.value);
}

bool Call::flag(std::string_view name) {
  const Argument& argument = get(name);
  if (const auto* value = std::get_if<bool>(&argument.value)) return *value;
  if (const auto* value = std::get_if<int64_t>(&argument.value)) return *value != 0;
  refuse(fmt::format("the value of {} is not known", name));
}

std::string Call::text(std::string_view name) {
  const Argument* argument = find(name);
  const auto* value = argument == nullptr ? nullptr : std::get_if<std::string>(&argument->value);
  return value == nullptr ? std::string() : *value;
}

std::vector<std::string> Call::texts(std::string_view name) {
  const auto* list = std::get_if<ArgumentList>(&get(name).value);
  if (list == nullptr) refuse(fmt::format("{} is not a list", name));
  std::vector<std::string> values;
  for (const Argument& item : *list) {
    const auto* value = std::get_if<std::string>(&item.value);
    if (value == nullptr) refuse(fmt::format("{} has other than text", name));
    values.push_back(*value);
  }
  return values;
}

std::optional<DType> Call::dtype(std::string_view name) {
  if (!has(name)) return std::nullopt;
  const auto* value = std::get_if<DType>(&get(name).value);
  if (value == nullptr) refuse(fmt::format("{} is a dtype that Ingot does not support", name));
  if (is_complex(*value)) refuse("complex numbers");
  return *value;
}

size_t Call::axis(std::string_view name, size_t rank) { return checked_axis(name, integer(name), rank); }

size_t Call::checked_axis(std::string_view name, int64_t given, size_t rank) const {
  // A tensor without dims accepts 0 and -1.
  const int64_t count = std::max<int64_t>(static_cast<int64_t>(rank), 1);
  if (given < -count || given >= count)
    refuse(fmt::format("{} is {} for a tensor of rank {}", name, given, rank));
  return static_cast<size_t>(given < 0 ? given + count : given);
}

std::vector<int64_t> Call::axes(std::string_view name, size_t rank) {
  std::vector<int64_t> result;
  if (has(name)) {
    for (const int64_t given : integers(name)) {
      result.push_back(static_cast<int64_t>(checked_axis(name, given, rank)));
      require(std::ranges::count(result, result.back()) == 1, fmt::format("a repeated dim in {}", name));
    }
  }
  if (result.empty()) {
    for (size_t axis = 0; axis < rank; ++axis) result.push_back(static_cast<int64_t>(axis));
  }
  std::ranges::sort(result);
  if (rank == 0) result.clear();
  return result;
}

const TensorMeta& Call::result_meta(size_t index) const {
  if (index >= node_.outputs.size() || !node_.outputs[index]) refuse("the type of its result is not known");
  const Value& result = scope_.value(*node_.outputs[index]);
  if (result.kind == ValueKind::kOther) refuse("the type of its result is not known");
  return result.tensor;
}

void Call::give(size_t index, core::Value* result) {
  if (index < node_.outputs.size() && node_.outputs[index]) scope_.give(*node_.outputs[index], result);
}

void Call::give(const Dim& result) {
  if (!node_.outputs.empty() && node_.outputs[0]) scope_.give(*node_.outputs[0], result);
}

void Call::give_number(double result) {
  if (!node_.outputs.empty() && node_.outputs[0]) scope_.give(*node_.outputs[0], result);
}

void Call::give(RealOfSizes result) {
  if (!node_.outputs.empty() && node_.outputs[0]) scope_.give(*node_.outputs[0], result);
}

int64_t whole_number(const core::Graph& graph, double value) {
  if (std::abs(value) < 0x1p63 || value == -0x1p63) return static_cast<int64_t>(value);
  throw UserError(ErrorDetails{.code = "INGOT-U510",
                               .message = fmt::format("{} instead of a 64-bit integer", value),
                               .node = graph.current_name,
                               .source_line = graph.current_source.to_string(),
                               .advice = "check the program that made this graph"});
}

core::Value* converted(core::Graph& graph, core::Value* value, DType dtype) {
  const DType from = value->type.dtype;
  if (from == dtype) return value;
  // Floats out of a narrow integer's range wrap in torch, whereas our conversion saturates.
  if (is_floating(from) && is_integer(dtype) && bit_width(dtype) < 32)
    value = graph.call(ops::convert, {value}, ops::Convert{DType::kI64});
  return graph.call(ops::convert, {value}, ops::Convert{dtype});
}

}  // namespace ingot::core::aten
