// SPDX-License-Identifier: Apache-2.0
#include "backends/cpu/compile/templates/panel_reader.h"

#include <llvm/IR/IntrinsicsX86.h>

#include "backends/cpu/compile/llvm/elements.h"

namespace ingot::core::cpu {
namespace {

constexpr int64_t kFetchedAhead = 4096;  // bytes, as for plain tiles

}  // namespace

llvm::FunctionType* panel_function_type(llvm::LLVMContext& context) {
  const std::vector<llvm::Type*> pointers(5, llvm::PointerType::get(context, 0));
  return llvm::FunctionType::get(llvm::Type::getVoidTy(context), pointers, false);
}

ScaledPanel panel_in(llvm::Function& microkernel) {
  return {microkernel.getArg(1), microkernel.getArg(2), microkernel.getArg(3)};
}

llvm::Value* PanelReader::load(llvm::Value* panel, llvm::Value* k, int v) const {
  llvm::Value* row = byte_at(panel, builder.CreateNSWMul(k, number(tile.step_bytes())));
  const int64_t bytes = tile.step_bytes() / tile.vectors * elements_together(tile);
  llvm::Value* place = builder.CreateConstGEP1_64(builder.getInt8Ty(), row, v * bytes);
  return is_packed() ? load_lanes(builder, DType::kI32, place, tile.lanes)
                     : load_as_float(builder, tile.b, place, tile.lanes);
}

// The look-up ignores the bits above an element's four.
llvm::Value* PanelReader::element(llvm::Value* loaded, int i) const {
  if (!is_packed()) return loaded;
  llvm::Value* code = builder.CreateLShr(loaded, 4 * i);
  if (looks_up())
    return builder.CreateIntrinsic(llvm::Intrinsic::x86_avx512_permvar_sf_512, {}, {values(), code});
  return builder.CreateSIToFP(builder.CreateAnd(code, 15), vector());
}

llvm::Value* PanelReader::values() const {
  std::vector<llvm::Constant*> result;
  for (int64_t code = 0; code < tile.lanes; ++code)
    result.push_back(llvm::ConstantFP::get(builder.getFloatTy(), static_cast<double>(code - scales.offset)));
  return llvm::ConstantVector::get(result);
}

// Vector `v` of the parameters of a block.
llvm::Value* PanelReader::of_block(DType stored, llvm::Value* parameters, llvm::Value* block, int v) const {
  llvm::Value* place =
      byte_at(parameters, builder.CreateNSWMul(block, number(row_bytes(stored, tile.columns()))));
  place = builder.CreateConstGEP1_64(builder.getInt8Ty(), place, v * row_bytes(stored, tile.lanes));
  return load_as_float(builder, stored, place, tile.lanes);
}

llvm::Value* PanelReader::scale(const ScaledPanel& panel, llvm::Value* block, int v) const {
  return of_block(scales.scale, panel.scales, block, v);
}

llvm::Value* PanelReader::zero_point(const ScaledPanel& panel, llvm::Value* block, int v) const {
  return of_block(*scales.zero_point, panel.zero_points, block, v);
}

llvm::Value* PanelReader::center(const ScaledPanel& panel, llvm::Value* block, int v) const {
  const int64_t offset = looks_up() ? 0 : scales.offset;
  llvm::Value* numbers = splat(static_cast<double>(offset));
  if (!scales.zero_point) return offset == 0 ? nullptr : numbers;
  return builder.CreateFAdd(zero_point(panel, block, v), numbers);
}

void PanelReader::prefetch(const ScaledPanel& panel, llvm::Value* block, int64_t elements) const {
  const int64_t bytes = elements * tile.step_bytes();
  llvm::Value* ahead =
      builder.CreateNSWAdd(builder.CreateNSWMul(block, number(bytes)), number(kFetchedAhead));
  for (int64_t line = 0; line < bytes; line += kCacheLine)
    prefetch_line(builder, byte_at(panel.numbers, builder.CreateNSWAdd(ahead, number(line))), 3);
}

}  // namespace ingot::core::cpu
