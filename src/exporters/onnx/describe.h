// SPDX-License-Identifier: Apache-2.0
// What graphs and engines have in common, in ONNX's terms.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "exporters/onnx/onnx_model.h"
#include "ir/attribute.h"
#include "types/plain_value.h"

namespace ingot::core::exported {

constexpr size_t kMostBytesOfValues = 4096;  // tensors of more bytes are exported without their values

// Numbers stay numbers, dims that are none are texts, and so are doubles, for which ONNX has f32 alone.
OnnxAttribute attribute_of(std::string_view name, const AttributeValue& value);
OnnxAttribute attribute_of(const NamedValue& value);

OnnxValue value_of(std::string name, const TensorType& type);  // with the layout, unless it is row-major

// `values`: dense in storage order, empty if unknown. A tensor of another layout than row-major is left
// without values too, since ONNX has no layouts.
OnnxTensor tensor_of(std::string name, const TensorType& type, std::span<const std::byte> values);

void add_symbols(Metadata& metadata, const SymbolTable& symbols);  // "symbol B": "1..16, typical 8"

// The name of an output of init, among the weights of main too.
std::string name_of_prepared(int64_t output);

// The init program, as a function of kProgramDomain.
void add_init(OnnxModel& model, OnnxGraph init);

// A further line, if the text has it not yet.
void append_line(std::string& text, const std::string& line);

// The text about a model; `what`: what it shows, as a noun phrase.
std::string doc_of_model(std::string_view what);

}  // namespace ingot::core::exported
