// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/compile/collectives.h"

#include <algorithm>
#include <array>

#include "ops/collective.h"
#include "ops/ops.h"

namespace ingot::core::cuda {
namespace {

constexpr std::array kReduced = {DType::kI8,  DType::kU8,  DType::kI32,  DType::kU32, DType::kI64,
                                 DType::kU64, DType::kF16, DType::kBF16, DType::kF32, DType::kF64};

}  // namespace

bool is_collective_of_nccl(const Node& node) {
  if (!node.op->traits.has(Trait::kCollective)) return false;
  const DType dtype = node.operand_type(0).dtype;
  if (node.op != &ops::all_reduce && node.op != &ops::reduce_scatter) return bit_width(dtype) >= 8;
  const bool is_average = node.attributes<ops::ReducingCollective>().reduction == "avg";
  return std::ranges::find(kReduced, dtype) != kReduced.end() && (!is_average || is_floating(dtype));
}

}  // namespace ingot::core::cuda
