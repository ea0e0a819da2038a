// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ir/graph.h"
#include "types/tensor.h"

namespace ingot::core {

inline constexpr int64_t kByteShift = 128;  // u8 less this is i8

// An i32 without dims.
inline Value* integer_constant(Graph& graph, int64_t value) {
  Tensor tensor = make_tensor(DType::kI32, {});
  write_integer(tensor.view(), {}, value);
  return graph.add_constant(std::move(tensor));
}

}  // namespace ingot::core
