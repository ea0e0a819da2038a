// SPDX-License-Identifier: Apache-2.0
// Numbers of fields and types are those of onnx.proto, IR version 10.
#include <algorithm>

#include "exporters/onnx/onnx_model.h"
#include "exporters/onnx/wire_message.h"
#include "support/error.h"

namespace ingot::core::exported {
namespace {

constexpr int64_t kIrVersion = 10;     // the first with metadata of nodes and types of values in functions
constexpr int64_t kOnnxOpset = 21;     // its newest opset, of Constant
constexpr int64_t kDomainVersion = 1;  // of our domains

int64_t data_type(DType dtype) {
  switch (dtype) {
    case DType::kF32:
      return 1;
    case DType::kU8:
      return 2;
    case DType::kI8:
      return 3;
    case DType::kU16:
      return 4;
    case DType::kI16:
      return 5;
    case DType::kI32:
      return 6;
    case DType::kI64:
      return 7;
    case DType::kBool:
      return 9;
    case DType::kF16:
      return 10;
    case DType::kF64:
      return 11;
    case DType::kU32:
      return 12;
    case DType::kU64:
      return 13;
    case DType::kC64:
      return 14;
    case DType::kC128:
      return 15;
    case DType::kBF16:
      return 16;
    case DType::kE4M3:
      return 17;
    case DType::kE5M2:
      return 19;
    case DType::kU4:
      return 21;
    case DType::kI4:
      return 22;
  }
  throw InternalError("a dtype that ONNX does not have");
}

void add_metadata(WireMessage& message, uint32_t field, const Metadata& metadata) {
  for (const auto& [key, value] : metadata) {
    WireMessage entry;
    entry.text(1, key);
    entry.text(2, value);
    message.message(field, entry);
  }
}

void add_doc(WireMessage& message, uint32_t field, const std::string& doc) {
  if (!doc.empty()) message.text(field, doc);
}

void add_opsets(WireMessage& message, uint32_t field) {
  const std::pair<const char*, int64_t> opsets[] = {{"", kOnnxOpset},
                                                    {kOperatorDomain, kDomainVersion},
                                                    {kRegionDomain, kDomainVersion},
                                                    {kProgramDomain, kDomainVersion}};
  for (const auto& [domain, version] : opsets) {
    WireMessage opset;
    opset.text(1, domain);
    opset.integer(2, version);
    message.message(field, opset);
  }
}

WireMessage dense_tensor(const OnnxTensor& tensor, const std::vector<int64_t>& shape) {
  WireMessage message;
  for (const int64_t size : shape) message.integer(1, size);
  message.integer(2, data_type(tensor.dtype));
  message.text(8, tensor.name);
  if (!tensor.values.empty()) message.bytes(9, as_bytes(tensor.values));
  add_doc(message, 12, tensor.doc);
  return message;
}

// Of no elements: the only form in which ONNX accepts a tensor without its values. Its rank is not 0.
WireMessage sparse_tensor(const OnnxTensor& tensor) {
  const OnnxTensor indices{.name = {}, .dtype = DType::kI64, .shape = {}};
  WireMessage message;
  message.message(1, dense_tensor(tensor, {0}));
  message.message(2, dense_tensor(indices, {0}));
  for (const int64_t size : tensor.shape) message.integer(3, size);
  if (tensor.shape.empty()) message.integer(3, 1);
  return message;
}

WireMessage dim_message(const Dim& dim) {
  WireMessage message;
  if (const auto size = dim.constant()) {
    message.integer(1, *size);
  } else {
    message.text(2, dim.to_string());
  }
  return message;
}

WireMessage value_message(const OnnxValue& value) {
  WireMessage shape, tensor, type, message;
  for (const Dim& dim : value.type.shape) shape.message(1, dim_message(dim));
  tensor.integer(1, data_type(value.type.dtype));
  tensor.message(2, shape);
  type.message(1, tensor);
  message.text(1, value.name);
  message.message(2, type);
  add_doc(message, 3, value.doc);
  add_metadata(message, 4, value.metadata);
  return message;
}

WireMessage graph_message(const OnnxGraph& graph);

// Adds the value and returns the attribute's type.
struct AttributeWriter {
  WireMessage& message;

  int64_t operator()(int64_t value) const {
    message.integer(3, value);
    return 2;
  }
  int64_t operator()(const std::string& value) const {
    message.text(4, value);
    return 3;
  }
  int64_t operator()(const std::vector<int64_t>& values) const {
    for (const int64_t value : values) message.integer(8, value);
    return 7;
  }
  int64_t operator()(const std::vector<std::string>& values) const {
    for (const std::string& value : values) message.text(9, value);
    return 8;
  }
  int64_t operator()(const OnnxTensor& value) const {
    constexpr int64_t kTensor = 4, kSparseTensor = 11;
    const bool sparse = has_no_values(value);
    message.message(sparse ? 22 : 5, sparse ? sparse_tensor(value) : dense_tensor(value, value.shape));
    return sparse ? kSparseTensor : kTensor;
  }
  int64_t operator()(const std::shared_ptr<const OnnxGraph>& value) const {
    message.message(6, graph_message(*value));
    return 5;
  }
};

WireMessage node_message(const OnnxNode& node) {
  WireMessage message;
  for (const std::string& input : node.inputs) message.text(1, input);
  for (const std::string& output : node.outputs) message.text(2, output);
  message.text(3, node.name);
  message.text(4, node.op);
  for (const OnnxAttribute& attribute : node.attributes) {
    WireMessage entry;
    entry.text(1, attribute.name);
    entry.integer(20, std::visit(AttributeWriter{entry}, attribute.value));
    message.message(5, entry);
  }
  add_doc(message, 6, node.doc);
  if (!node.domain.empty()) message.text(7, node.domain);
  add_metadata(message, 9, node.metadata);
  return message;
}

void add_values(WireMessage& message, uint32_t field, const std::vector<OnnxValue>& values) {
  for (const OnnxValue& value : values) message.message(field, value_message(value));
}

WireMessage graph_message(const OnnxGraph& graph) {
  WireMessage message;
  for (const OnnxNode& node : graph.nodes) message.message(1, node_message(node));
  message.text(2, graph.name);
  for (const OnnxTensor& tensor : graph.tensors) {
    if (!has_no_values(tensor)) message.message(5, dense_tensor(tensor, tensor.shape));
  }
  add_doc(message, 10, graph.doc);
  add_values(message, 11, graph.inputs);
  add_values(message, 12, graph.outputs);
  add_values(message, 13, graph.values);
  for (const OnnxTensor& tensor : graph.tensors) {
    if (has_no_values(tensor)) message.message(15, sparse_tensor(tensor));
  }
  add_metadata(message, 16, graph.metadata);
  return message;
}

OnnxNode constant_node(const OnnxTensor& tensor) {
  return {.inputs = {},
          .outputs = {tensor.name},
          .name = tensor.name,
          .op = "Constant",
          .domain = "",
          .attributes = {{has_no_values(tensor) ? "sparse_value" : "value", tensor}}};
}

// Functions have no initializers.
WireMessage function_message(const OnnxFunction& function) {
  const OnnxGraph& graph = function.graph;
  WireMessage message;
  message.text(1, graph.name);
  for (const OnnxValue& input : graph.inputs) message.text(4, input.name);
  for (const OnnxValue& output : graph.outputs) message.text(5, output.name);
  for (const OnnxTensor& tensor : graph.tensors) message.message(7, node_message(constant_node(tensor)));
  for (const OnnxNode& node : graph.nodes) message.message(7, node_message(node));
  add_doc(message, 8, graph.doc);
  add_opsets(message, 9);
  message.text(10, function.domain);
  add_values(message, 12, graph.inputs);
  add_values(message, 12, graph.values);
  add_values(message, 12, graph.outputs);
  add_metadata(message, 14, graph.metadata);
  return message;
}

}  // namespace

bool has_no_values(const OnnxTensor& tensor) {
  return tensor.values.empty() && std::ranges::find(tensor.shape, 0) == tensor.shape.end();
}

std::string to_bytes(const OnnxModel& model) {
  WireMessage message;
  message.integer(1, kIrVersion);
  message.text(2, "ingot");
  message.text(3, INGOT_VERSION);
  message.text(6, model.doc);
  message.message(7, graph_message(model.graph));
  add_opsets(message, 8);
  add_metadata(message, 14, model.metadata);
  for (const OnnxFunction& function : model.functions) message.message(25, function_message(function));
  return message.content();
}

}  // namespace ingot::core::exported
