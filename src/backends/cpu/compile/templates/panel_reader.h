// SPDX-License-Identifier: Apache-2.0
// Reads panels of weights with a scale, and maybe a zero point, per block of the depth.
#pragma once

#include <optional>

#include "backends/cpu/compile/templates/tile.h"

namespace ingot::core::cpu {

// How a panel is stored: [depth][NR] numbers (u4: [depth / 8][NR] words), and for each of its scales and zero
// points [depth / block][NR].
struct BlockScales {
  int64_t block = 0;
  DType scale = DType::kF32;
  std::optional<DType> zero_point;
  int64_t offset = 0;  // of all zero points
};

// A panel's numbers, scales and zero points.
struct ScaledPanel {
  llvm::Value *numbers, *scales, *zero_points;
};

// Microkernels take the rows of A, the three of a panel, and sums.
llvm::FunctionType* panel_function_type(llvm::LLVMContext& context);
ScaledPanel panel_in(llvm::Function& microkernel);

// Elements of a column that are loaded together: a word of 32 bits of those that are packed.
inline int elements_together(const TileShape& tile) { return tile.b == DType::kU4 ? 8 : 1; }

struct PanelReader {
  Builder& builder;
  const TileShape& tile;
  const BlockScales& scales;

  llvm::Value* number(int64_t value) const { return builder.getInt64(static_cast<uint64_t>(value)); }
  llvm::Value* byte_at(llvm::Value* pointer, llvm::Value* offset) const {
    return builder.CreateGEP(builder.getInt8Ty(), pointer, offset);
  }
  llvm::Type* vector() const {
    return llvm::FixedVectorType::get(builder.getFloatTy(), static_cast<unsigned>(tile.lanes));
  }
  llvm::Value* splat(double value) const { return llvm::ConstantFP::get(vector(), value); }
  bool is_packed() const { return tile.b == DType::kU4; }
  // A register has room for the values of all codes of four bits, without the offset of zero points.
  bool looks_up() const { return is_packed() && tile.lanes == 16; }

  // Vector `v` of the elements of depth `k`, as f32; of packed ones the words that begin there.
  llvm::Value* load(llvm::Value* panel, llvm::Value* k, int v) const;
  // Element `i` of each lane of what `load` returned.
  llvm::Value* element(llvm::Value* loaded, int i) const;

  llvm::Value* scale(const ScaledPanel& panel, llvm::Value* block, int v) const;
  llvm::Value* zero_point(const ScaledPanel& panel, llvm::Value* block, int v) const;
  // What is to be subtracted from the elements of a block; null: nothing.
  llvm::Value* center(const ScaledPanel& panel, llvm::Value* block, int v) const;
  bool has_centers() const { return scales.zero_point || (scales.offset != 0 && !looks_up()); }
  // Fetches the block's share of what follows the panel's next kilobytes.
  void prefetch(const ScaledPanel& panel, llvm::Value* block, int64_t elements) const;

 private:
  llvm::Value* values() const;
  llvm::Value* of_block(DType stored, llvm::Value* parameters, llvm::Value* block, int v) const;
};

}  // namespace ingot::core::cpu
