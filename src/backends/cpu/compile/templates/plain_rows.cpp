// SPDX-License-Identifier: Apache-2.0
#include "backends/cpu/compile/templates/plain_rows.h"

namespace ingot::core::cpu {

void fill_plain_rows(const RowRequest& request, int64_t row_numbers, int64_t group_numbers, int tile_rows) {
  Builder& builder = request.builder;
  llvm::Value* last = builder.CreateNSWSub(request.rows, builder.getInt64(1));
  llvm::Value* start =
      builder.CreateNSWAdd(builder.CreateNSWMul(request.row, builder.getInt64(row_numbers)),
                           builder.CreateNSWMul(request.group, builder.getInt64(group_numbers)));
  llvm::Value* first = builder.CreateGEP(request.element, request.buffers[0], start);
  for (int row = 0; row < tile_rows; ++row) {
    llvm::Value* existing = builder.CreateBinaryIntrinsic(llvm::Intrinsic::smin, builder.getInt64(row), last);
    llvm::Value* place = builder.CreateNSWMul(existing, builder.getInt64(row_numbers));
    builder.CreateStore(builder.CreateGEP(request.element, first, place),
                        builder.CreateConstGEP1_64(builder.getPtrTy(), request.table, row));
  }
}

}  // namespace ingot::core::cpu
