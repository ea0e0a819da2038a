// SPDX-License-Identifier: Apache-2.0
#include "exporters/onnx/describe.h"

#include <fmt/format.h>

namespace ingot::core::exported {
namespace {

struct AttributeConverter {
  OnnxAttributeValue operator()(bool value) const { return int64_t{value}; }
  OnnxAttributeValue operator()(int64_t value) const { return value; }
  OnnxAttributeValue operator()(double value) const { return fmt::format("{}", value); }
  OnnxAttributeValue operator()(const std::string& value) const { return value; }
  OnnxAttributeValue operator()(DType value) const { return std::string(core::name(value)); }
  OnnxAttributeValue operator()(const Dim& value) const { return value.to_string(); }
  OnnxAttributeValue operator()(const std::vector<int64_t>& values) const { return values; }
  OnnxAttributeValue operator()(const std::vector<double>& values) const {
    std::vector<std::string> texts;
    for (const double value : values) texts.push_back(fmt::format("{}", value));
    return texts;
  }
  OnnxAttributeValue operator()(const std::vector<Dim>& values) const {
    std::vector<std::string> texts;
    for (const Dim& value : values) texts.push_back(value.to_string());
    return texts;
  }
  OnnxAttributeValue operator()(const Layout& value) const {
    return value.is_row_major() ? std::string("row-major") : to_string(value);
  }
  OnnxAttributeValue operator()(None) const { return std::string("none"); }
};

std::string range_text(const SymbolInfo& info) {
  std::string text = fmt::format("{}..", info.range.min);
  if (info.range.max != DimRange{}.max) text += std::to_string(info.range.max);
  if (info.typical) text += fmt::format(", typical {}", *info.typical);
  if (info.upper_bound) text += ", at most " + info.upper_bound->to_string();
  return text;
}

}  // namespace

OnnxAttribute attribute_of(std::string_view name, const AttributeValue& value) {
  return {std::string(name), std::visit(AttributeConverter{}, value)};
}

OnnxAttribute attribute_of(const NamedValue& value) {
  return {value.name, std::visit(AttributeConverter{}, value.value)};
}

OnnxValue value_of(std::string name, const TensorType& type) {
  OnnxValue value{.name = std::move(name), .type = type};
  if (!type.layout.is_row_major()) value.metadata.emplace_back("layout", to_string(type.layout));
  return value;
}

OnnxTensor tensor_of(std::string name, const TensorType& type, std::span<const std::byte> values) {
  OnnxTensor tensor{.name = std::move(name), .dtype = type.dtype, .shape = {}};
  for (const Dim& dim : type.shape) tensor.shape.push_back(dim.constant().value());
  if (values.size() <= kMostBytesOfValues && type.layout.is_row_major())
    tensor.values.assign(reinterpret_cast<const char*>(values.data()), values.size());
  if (has_no_values(tensor)) tensor.doc = to_string(type) + "; its values are left out";
  return tensor;
}

void add_symbols(Metadata& metadata, const SymbolTable& symbols) {
  for (const auto& [name, info] : symbols) metadata.emplace_back("symbol " + name, range_text(info));
}

std::string name_of_prepared(int64_t output) { return fmt::format("init.{}", output); }

void add_init(OnnxModel& model, OnnxGraph init) {
  init.name = "init";
  init.doc = "Prepares weights, once per checkpoint. The main graph reads its outputs by their names.";
  model.functions.push_back({kProgramDomain, std::move(init)});
}

void append_line(std::string& text, const std::string& line) {
  if (line.empty() || text.find(line) != text.npos) return;
  text += (text.empty() ? "" : "\n") + line;
}

std::string doc_of_model(std::string_view what) {
  return fmt::format(
      "{}, for viewers. No runtime of ONNX runs it: its operators are those of Ingot, and the values of "
      "tensors of more than {} bytes are left out.",
      what, kMostBytesOfValues);
}

}  // namespace ingot::core::exported
