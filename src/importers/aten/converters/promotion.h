// SPDX-License-Identifier: Apache-2.0
// torch's type promotion, and numbers as tensors.
#pragma once

#include <span>

#include "importers/aten/converters/call.h"

namespace ingot::core::aten {

// The contribution of one operand to torch.result_type. Tensors without dims, and even more so plain numbers,
// count only if their category is higher (bool < integer < floating < complex).
struct PromotionOperand {
  enum class Rank { kTensor, kScalarTensor, kNumber };
  DType dtype;  // of numbers: bool, i64 or f64
  Rank rank;
};
DType result_dtype(std::span<const PromotionOperand> operands);

// Tensors without dims.
core::Value* scalar(core::Graph& graph, double value, DType dtype);
core::Value* size_scalar(core::Graph& graph, const Dim& size, DType dtype);

}  // namespace ingot::core::aten
