// SPDX-License-Identifier: Apache-2.0
#include "backends/cpu/compile/templates/are_below.h"

#include <bit>

#include "backends/cpu/compile/llvm/elements.h"
#include "backends/cpu/compile/llvm/lanes.h"

namespace ingot::core::cpu {

// Bits of magnitudes are ordered as the numbers are, with NaN above all.
llvm::Value* are_below(Scaffold& scaffold, const RowRange& range, double limit) {
  Builder& builder = scaffold.builder;
  const auto lanes = static_cast<unsigned>(range.lanes);
  auto* bits = llvm::FixedVectorType::get(builder.getInt32Ty(), lanes);
  const std::vector<llvm::Value*> none(static_cast<size_t>(round_up(range.width, range.lanes) / range.lanes),
                                       llvm::Constant::getNullValue(bits));
  std::vector<llvm::Value*> largest = emit_carrying_loop(
      builder, range.first, range.end, 1, none, [&](llvm::Value* row, std::span<llvm::Value* const> now) {
        std::vector<llvm::Value*> next;
        for (llvm::Value* before : now) {
          const int64_t column = static_cast<int64_t>(next.size()) * range.lanes;
          const int64_t left = range.width - column;
          llvm::Value* mask =
              left < range.lanes ? first_lanes(builder, scaffold.number(left), range.lanes) : nullptr;
          llvm::Value* place = range.rows.at(builder, row, scaffold.number(column));
          llvm::Value* number = load_lanes(builder, range.dtype, place, range.lanes, mask);
          llvm::Value* magnitude = builder.CreateAnd(builder.CreateBitCast(number, bits),
                                                     llvm::ConstantInt::get(bits, 0x7fffffff));
          next.push_back(builder.CreateBinaryIntrinsic(llvm::Intrinsic::umax, before, magnitude));
        }
        return next;
      });
  llvm::Value* all = largest[0];
  for (size_t i = 1; i < largest.size(); ++i)
    all = builder.CreateBinaryIntrinsic(llvm::Intrinsic::umax, all, largest[i]);
  const auto most = std::bit_cast<uint32_t>(static_cast<float>(limit));
  return builder.CreateICmpULT(builder.CreateUnaryIntrinsic(llvm::Intrinsic::vector_reduce_umax, all),
                               builder.getInt32(most));
}

}  // namespace ingot::core::cpu
