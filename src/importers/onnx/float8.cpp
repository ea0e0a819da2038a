// SPDX-License-Identifier: Apache-2.0
#include "importers/onnx/float8.h"

#include "importers/onnx/building.h"
#include "ops/select.h"

namespace ingot::core::onnx {

// e4m3 has no infinity, so that conversions saturate by themselves.
Value* to_float8(Call& call, Value* value, DType dtype) {
  constexpr double kLargestE5M2 = 57344;
  if (call.attribute_integer("saturate", 1) == 0) refuse("conversions to float8 that do not saturate");
  Graph& graph = call.graph();
  Value* wide = converted(graph, value, DType::kF32);
  if (dtype == DType::kE5M2) wide = graph.call(ops::clamp, {wide}, ops::Clamp{-kLargestE5M2, kLargestE5M2});
  return converted(graph, wide, dtype);
}

}  // namespace ingot::core::onnx
