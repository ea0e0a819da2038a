// SPDX-License-Identifier: Apache-2.0
#include "backends/cpu/compile/templates/attention_pairs.h"

#include <llvm/IR/IntrinsicsX86.h>

#include "backends/cpu/compile/llvm/elements.h"
#include "backends/cpu/compile/llvm/lanes.h"

namespace ingot::core::cpu {

llvm::Value* rounded_pairs(Builder& builder, llvm::Value* even, llvm::Value* odd) {
  constexpr int kLanes = 16;
  llvm::Value* both =
      builder.CreateIntrinsic(llvm::Intrinsic::x86_avx512bf16_cvtne2ps2bf16_512, {}, {odd, even});
  std::vector<int> lanes;
  for (int i = 0; i < 2 * kLanes; ++i) lanes.push_back(i / 2 + i % 2 * kLanes);
  llvm::Value* halves = builder.CreateBitCast(both, stored_type(builder, DType::kI16, 2 * kLanes));
  return builder.CreateShuffleVector(halves, lanes);
}

void pack_value_pairs(Scaffold& scaffold, const ValueRows& rows, llvm::Value* to) {
  Builder& builder = scaffold.builder;
  const int64_t words = round_up(rows.width, rows.lanes);
  llvm::Value* last = scaffold.plus(rows.count, -1);
  emit_loop(builder, scaffold.number(0), rows.count, 2, [&](llvm::Value* at) {
    llvm::Value* next = scaffold.plus(at, 1);
    llvm::Value* exists = builder.CreateICmpSLT(next, rows.count);
    for (int64_t column = 0; column < words; column += rows.lanes) {
      llvm::Value* mask = rows.width - column < rows.lanes
                              ? first_lanes(builder, scaffold.number(rows.width - column), rows.lanes)
                              : nullptr;
      const auto load = [&](llvm::Value* row) {
        llvm::Value* place =
            rows.values.at(builder, builder.CreateNSWAdd(rows.first, row), scaffold.number(column));
        return load_lanes(builder, DType::kI16, place, rows.lanes, mask);
      };
      llvm::Value* odd = load(scaffold.smaller(next, last));
      odd = builder.CreateSelect(exists, odd, llvm::Constant::getNullValue(odd->getType()));
      llvm::Value* pair = scaffold.plus(scaffold.times(builder.CreateLShr(at, 1), words), column);
      store_lanes(builder, DType::kI16, alternate_lanes(builder, load(at), odd),
                  builder.CreateGEP(builder.getInt32Ty(), to, pair));
    }
  });
}

}  // namespace ingot::core::cpu
