// SPDX-License-Identifier: Apache-2.0
// An ONNX model as plain data, as far as viewers show it (docs/design/035-onnx-for-viewers.md).
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "types/tensor_type.h"

namespace ingot::core::exported {

constexpr const char* kOperatorDomain = "ingot";         // nodes, named as Ingot's operators and steps are
constexpr const char* kRegionDomain = "ingot.region";    // functions: fused regions
constexpr const char* kProgramDomain = "ingot.program";  // functions: the init program

using Metadata = std::vector<std::pair<std::string, std::string>>;

struct OnnxTensor {
  std::string name;
  DType dtype = DType::kF32;
  std::vector<int64_t> shape;
  std::string values =
      {};  // bytes, row-major; empty: left out, and the tensor is a sparse one of no elements
  std::string doc = {};
};

struct OnnxValue {
  std::string name;
  TensorType type;
  std::string doc = {};
  Metadata metadata = {};
};

struct OnnxGraph;
using OnnxAttributeValue = std::variant<int64_t, std::string, std::vector<int64_t>, std::vector<std::string>,
                                        OnnxTensor, std::shared_ptr<const OnnxGraph>>;

struct OnnxAttribute {
  std::string name;
  OnnxAttributeValue value;
};

struct OnnxNode {
  std::vector<std::string> inputs, outputs;  // names of values; "" for an absent optional operand
  std::string name, op, domain = kOperatorDomain, doc = {};
  std::vector<OnnxAttribute> attributes = {};
  Metadata metadata = {};
};

struct OnnxGraph {
  std::string name, doc;
  std::vector<OnnxNode> nodes;
  std::vector<OnnxValue> inputs, outputs, values;
  std::vector<OnnxTensor> tensors;  // initializers; in a function nodes of ONNX's operator Constant
  Metadata metadata;
};

struct OnnxFunction {
  std::string domain;
  OnnxGraph graph;  // its name is the operator that calls the function
};

struct OnnxModel {
  std::string doc;
  OnnxGraph graph;
  std::vector<OnnxFunction> functions;
  Metadata metadata;
};

// Whether the values are left out: a tensor without elements has none.
bool has_no_values(const OnnxTensor& tensor);

// The file: equal models have equal bytes.
std::string to_bytes(const OnnxModel& model);

}  // namespace ingot::core::exported
