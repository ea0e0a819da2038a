// SPDX-License-Identifier: Apache-2.0
#include "importers/onnx/input_types.h"

#include <algorithm>
#include <set>

#include <fmt/core.h>

#include "importers/onnx/tensors.h"
#include "support/error.h"
#include "types/symbol_name.h"

namespace ingot::core::onnx {
namespace {

constexpr size_t kLongestName = 64;

class DimReader {
 public:
  DimReader(const std::vector<const ValueDef*>& inputs, SymbolTable& symbols) : symbols_(symbols) {
    for (const ValueDef* input : inputs) {
      for (const DimDef& dim : input->shape.value_or(std::vector<DimDef>{})) {
        if (is_symbol_name(dim.parameter)) plain_.insert(dim.parameter);
      }
    }
  }

  Dim read(const DimDef& dim, const std::string& input, size_t axis) {
    if (dim.value && *dim.value >= 0) return *dim.value;
    if (dim.parameter.empty()) return fresh(fmt::format("{}_{}", input, axis));
    if (plain_.contains(dim.parameter)) return symbol(dim.parameter);
    const auto known = others_.find(dim.parameter);
    if (known != others_.end()) return known->second;
    return others_.emplace(dim.parameter, expression(dim.parameter)).first->second;
  }

 private:
  // "2*batch + 1", if each of its symbols is the size of an input; otherwise a name that says nothing.
  Dim expression(const std::string& text) {
    try {
      const Dim parsed = parse_dim(text);
      const std::vector<std::string> names = parsed.symbols();
      if (std::ranges::all_of(names, [&](const std::string& name) { return plain_.contains(name); })) {
        for (const std::string& name : names) symbol(name);
        return parsed;
      }
    } catch (const UserError&) {  // not an expression
    }
    return fresh(text);
  }

  Dim symbol(const std::string& name) {
    symbols_.try_emplace(name, SymbolInfo{.range = {0, INT64_MAX}});
    return Dim::symbol(name);
  }

  Dim fresh(std::string_view like) {
    std::string name = "d_";
    for (const char letter : like.substr(0, kLongestName)) {
      const bool is_plain = (letter >= 'a' && letter <= 'z') || (letter >= 'A' && letter <= 'Z') ||
                            (letter >= '0' && letter <= '9');
      name += is_plain ? letter : '_';
    }
    std::string unused = name;
    for (int count = 2; symbols_.contains(unused) || plain_.contains(unused); ++count)
      unused = fmt::format("{}_{}", name, count);
    return symbol(unused);
  }

  SymbolTable& symbols_;
  std::set<std::string, std::less<>> plain_;
  std::map<std::string, Dim> others_;  // parameters that are not names
};

}  // namespace

std::vector<InputType> input_types(const LoadedModel& model, SymbolTable& symbols) {
  std::vector<const ValueDef*> inputs;
  for (const ValueDef& input : model.model.graph.inputs) {
    if (!model.values.contains(input.name)) inputs.push_back(&input);
  }
  DimReader reader(inputs, symbols);
  std::vector<InputType> types;
  for (const ValueDef* input : inputs) {
    const std::optional<DType> dtype = dtype_of(input->element_type);
    if (input->kind != "tensor")
      throw UnsupportedError("INGOT-N540", fmt::format("input '{}' is a {}", input->name, input->kind));
    if (!dtype || bit_width(*dtype) == 4)
      throw UnsupportedError("INGOT-N540", fmt::format("input '{}' has elements of type {}", input->name,
                                                       data_type_name(input->element_type)));
    if (!input->shape)
      throw UnsupportedError("INGOT-N540",
                             fmt::format("input '{}' has no shape, not even a rank", input->name),
                             "export the model again, with shapes of its inputs");
    TensorType type{*dtype, {}, {}};
    for (size_t i = 0; i < input->shape->size(); ++i)
      type.shape.push_back(reader.read((*input->shape)[i], input->name, i));
    types.push_back({input->name, std::move(type)});
  }
  return types;
}

}  // namespace ingot::core::onnx
