// SPDX-License-Identifier: Apache-2.0
#include "backends/cpu/compile/templates/scaled_products.h"

#include "backends/cpu/compile/templates/panel_reader.h"

namespace ingot::core::cpu {

ScaledProducts::ScaledProducts(Scaffold& scaffold, const TileShape& tile, const BlockScales& scales,
                               int64_t depth, std::optional<int64_t> rows)
    : scaffold_(scaffold), tile_(tile), scales_(scales), fixed_(fixed_rows(depth, scales.block)) {
  Code& code = scaffold.code;
  if (has_fixed_tiles(tile, code.features))
    of_fixed_.emplace(code, tile, scales, fixed_, rows);
  else
    of_floats_.emplace(code, tile, scales, depth, rows, Centering::kSums);
  if (of_fixed_ || PanelReader{scaffold.builder, tile_, scales_}.has_centers())
    of_any_.emplace(code, tile, scales, depth, 1, Centering::kElements);
}

int64_t ScaledProducts::scratch_bytes(const TileShape& tile, const BlockScales& scales, int64_t depth,
                                      CpuFeatures features) {
  if (!has_fixed_tiles(tile, features)) return 0;
  return tile.rows * fixed_rows(depth, scales.block).row_bytes() + kCacheLine;
}

void ScaledProducts::begin(llvm::Value* a, llvm::Value* rows, llvm::Value* scratch) {
  if (!of_any_) return;
  Builder& builder = scaffold_.builder;
  scratch_ = scratch;
  finite_ = stack_array(builder, builder.getInt1Ty(), 1, 1);
  builder.CreateStore(builder.getTrue(), finite_);
  emit_if(builder, builder.CreateICmpSLE(rows, scaffold_.number(tile_.rows)), [&] {
    llvm::Value* finite = of_fixed_
                              ? write_fixed_rows(scaffold_, fixed_, scales_.offset, a, rows, scratch)
                              : all_finite(scaffold_, a, scaffold_.times(rows, fixed_.depth), tile_.lanes);
    builder.CreateStore(finite, finite_);
  });
}

void ScaledProducts::call(llvm::Value* rows, llvm::Value* table, const ScaledPanel& panel,
                          llvm::Value* sums) {
  Builder& builder = scaffold_.builder;
  const auto multiply = [&] {
    if (of_fixed_)
      of_fixed_->call(builder, rows, scratch_, panel, sums);
    else
      of_floats_->call(builder, rows, table, panel, sums);
  };
  if (!of_any_) return multiply();
  emit_if(builder, builder.CreateLoad(builder.getInt1Ty(), finite_), multiply,
          [&] { call_one_by_one(rows, table, panel, sums); });
}

void ScaledProducts::call_one_by_one(llvm::Value* rows, llvm::Value* table, const ScaledPanel& panel,
                                     llvm::Value* sums) {
  Builder& builder = scaffold_.builder;
  emit_loop(builder, scaffold_.number(0), rows, 1, [&](llvm::Value* row) {
    of_any_->call(builder, scaffold_.number(1), builder.CreateGEP(builder.getPtrTy(), table, row), panel,
                  scaffold_.float_at(sums, scaffold_.times(row, tile_.columns())));
  });
}

}  // namespace ingot::core::cpu
