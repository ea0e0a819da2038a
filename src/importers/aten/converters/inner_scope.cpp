// SPDX-License-Identifier: Apache-2.0
#include "importers/aten/converters/inner_scope.h"

#include <utility>

#include "importers/aten/converters/parts.h"

namespace ingot::core::aten {

ValueId InnerScope::bind(core::Value* tensor) {
  const ValueId id = expect();
  give(id, tensor);
  return id;
}

ValueId InnerScope::expect() {
  own_.push_back({{.name = {}, .kind = ValueKind::kOther, .tensor = {}, .integer = {}}, {}});
  return first_free_id() - 1;
}

ValueId InnerScope::expect(TensorMeta recorded) {
  recorded.dtype = component_of(recorded.dtype);
  own_.push_back({{.name = {}, .tensor = std::move(recorded), .integer = {}}, {}});
  return first_free_id() - 1;
}

core::Value* InnerScope::result(ValueId id) const {
  core::Value* const* tensor = std::get_if<core::Value*>(&own_.at(id - first_).imported);
  return tensor == nullptr ? nullptr : *tensor;
}

Argument InnerScope::result_argument(ValueId id) const {
  const ImportedValue& imported = own_.at(id - first_).imported;
  if (const auto* number = std::get_if<double>(&imported)) return {*number};
  if (const auto* size = std::get_if<Dim>(&imported)) {
    if (const auto known = size->constant()) return {*known};
  }
  if (std::holds_alternative<std::monostate>(imported)) return {None{}};
  return {id};
}

const Value& InnerScope::value(ValueId id) const {
  return owns(id) ? own_[id - first_].value : outer_.value(id);
}

core::Value* InnerScope::tensor(ValueId id) { return owns(id) ? result(id) : outer_.tensor(id); }

std::optional<Dim> InnerScope::integer(ValueId id) {
  if (!owns(id)) return outer_.integer(id);
  const Dim* size = std::get_if<Dim>(&own_[id - first_].imported);
  return size == nullptr ? std::nullopt : std::optional(*size);
}

std::optional<double> InnerScope::number(ValueId id) {
  if (!owns(id)) return outer_.number(id);
  const double* number = std::get_if<double>(&own_[id - first_].imported);
  return number == nullptr ? std::nullopt : std::optional(*number);
}

core::Value* InnerScope::real_of_sizes(ValueId id) {
  if (!owns(id)) return outer_.real_of_sizes(id);
  const auto* real = std::get_if<RealOfSizes>(&own_[id - first_].imported);
  return real == nullptr ? nullptr : real->value;
}

void InnerScope::give(ValueId id, ImportedValue result) {
  if (!owns(id)) return outer_.give(id, std::move(result));
  Own& own = own_[id - first_];
  if (core::Value** tensor = std::get_if<core::Value*>(&result);
      tensor != nullptr && own.value.kind == ValueKind::kOther) {
    own.value.kind = ValueKind::kTensor;
    own.value.tensor = {(*tensor)->type.dtype, (*tensor)->type.shape, {}};
  }
  if (const Dim* size = std::get_if<Dim>(&result)) {
    own.value.kind = ValueKind::kSymInt;
    own.value.integer = *size;
  }
  if (std::holds_alternative<double>(result) || std::holds_alternative<RealOfSizes>(result))
    own.value.kind = ValueKind::kSymFloat;
  own.imported = std::move(result);
}

}  // namespace ingot::core::aten
