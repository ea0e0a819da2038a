// SPDX-License-Identifier: Apache-2.0
// An ONNX model as data: what the importer reads of the schema's messages, under their names. Texts and
// values are the file's, unchecked.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "support/bytes.h"

namespace ingot::core::onnx {

struct TensorDef {
  std::string name;
  int64_t data_type = 0;  // TensorProto.DataType
  std::vector<int64_t> dims;
  std::optional<Bytes> raw;  // little-endian elements in the file's memory
  std::vector<float> floats;
  std::vector<int64_t> integers;  // int32_data, int64_data and uint64_data
  std::vector<double> doubles;
  bool is_external = false;
  std::map<std::string, std::string> external;  // "location", "offset", "length"
};

struct GraphDef;

struct AttributeDef {
  std::string name;
  std::string parameter;  // in a function: the attribute of the call whose value this is
  int64_t type = 0;       // AttributeProto.AttributeType; 0 in old files
  double number = 0;
  int64_t integer = 0;
  std::string text;
  std::vector<double> numbers;
  std::vector<int64_t> integers;
  std::vector<std::string> texts;
  std::shared_ptr<const TensorDef> tensor;
  std::shared_ptr<const GraphDef> graph;
};

struct NodeDef {
  std::string name, op, domain;
  std::vector<std::string> inputs, outputs;  // "": absent
  std::vector<AttributeDef> attributes;
  std::string stack_trace;  // of the exporter, "" if it left none
};

struct DimDef {
  std::optional<int64_t> value;
  std::string parameter;  // "": unnamed
};

struct ValueDef {
  std::string name;
  std::string kind = "tensor";  // or "sequence", "map", "optional", "sparse tensor"
  int64_t element_type = 0;
  std::optional<std::vector<DimDef>> shape;  // nullopt: the rank is unknown
};

struct GraphDef {
  std::string name;
  std::vector<NodeDef> nodes;
  std::vector<TensorDef> initializers;
  std::vector<ValueDef> inputs, outputs;
  size_t sparse_initializers = 0;
};

struct FunctionDef {
  std::string name, domain;
  std::vector<std::string> inputs, outputs;
  std::vector<NodeDef> nodes;
  std::vector<AttributeDef> defaults;  // of its attributes, for calls that leave them out
  std::map<std::string, int64_t> opsets;
};

struct Model {
  int64_t ir_version = 0;
  std::string producer;                   // "pytorch 2.13.0"
  std::map<std::string, int64_t> opsets;  // by domain; "" is ONNX's own
  GraphDef graph;
  std::vector<FunctionDef> functions;
};

// "ai.onnx" is another name of the domain "".
inline std::string_view plain_domain(std::string_view domain) {
  return domain == "ai.onnx" ? std::string_view() : domain;
}

}  // namespace ingot::core::onnx
