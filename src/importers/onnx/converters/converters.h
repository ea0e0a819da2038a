// SPDX-License-Identifier: Apache-2.0
// The table of ONNX operators: a converter turns one node into nodes of ours. Each family has a file in this
// folder and a line in families.def.
#pragma once

#include <span>
#include <string_view>

#include "importers/onnx/call.h"

namespace ingot::core::onnx {

struct Converter {
  std::string_view name;  // "Gemm"
  void (*convert)(Call& call);
  const Op* op = nullptr;  // for converters that several operators share
  int64_t since = 1;       // the first opset whose rules it follows
};

#define FAMILY(name) std::span<const Converter> name##_converters();
#include "importers/onnx/converters/families.def"
#undef FAMILY

const Converter* find_converter(std::string_view name);  // null if there is none
size_t most_inputs(std::string_view name);               // that nodes of this operator have

}  // namespace ingot::core::onnx
