// SPDX-License-Identifier: Apache-2.0
// The epilogue: applied to the accumulators of a tile before they leave the cache.
//
// A contraction's result index is one column dim and its other dims, which are flattened, in order, to a row
// number. The epilogue of the whole result is rewritten as a kernel over one tile; the Loop IR emitter
// compiles it to a function like any other.
#pragma once

#include <optional>

#include "backends/backend.h"
#include "backends/cpu/compile/llvm/code.h"
#include "backends/cpu/compile/llvm/dim_emitter.h"
#include "backends/cpu/compile/templates/scaffold.h"
#include "loops/kernel.h"

namespace ingot::core::cpu {

struct EpilogueShape {
  size_t column_dim;               // of the result
  std::optional<TensorType> bias;  // [columns], added first: the last buffer of the tile's kernel
  int64_t tile_rows;               // at most
  int64_t tile_columns;            // at most; also the row stride of the accumulators, in elements
  bool whole_columns;              // every tile has all its columns
  DType sum = DType::kF32;         // of the accumulators
};

// Symbols of the tile's kernel, in addition to those of shapes.
inline constexpr const char* kTileRow = "$tile.row";        // first row
inline constexpr const char* kTileRows = "$tile.rows";      // how many
inline constexpr const char* kTileColumn = "$tile.column";  // first column
inline constexpr const char* kTileColumns = "$tile.columns";

// Parallel loops: the rows; the columns. Buffer 0: the accumulators, [tile.rows, tile_columns].
loops::Kernel tile_epilogue(const loops::Kernel& epilogue, const EpilogueShape& shape);

// An epilogue of sums of integers with scales and addends in one rounding each: an instruction less for each
// vector, beside which quantized results are made by about six. Not under strict numerics.
loops::Kernel epilogue_of_integers(const loops::Kernel& epilogue, const Target& target);

// An epilogue as a function of the module, to be called for each tile.
class EpilogueFunction {
 public:
  EpilogueFunction(Code& code, const loops::Kernel& tile_kernel);

  // At the start of a kernel with `operands` buffers before the epilogue's (the bias is the last if there are
  // more than `without_bias`) and these symbol arguments: loads all, and prepares.
  void load_arguments(Scaffold& scaffold, size_t operands, const std::vector<std::string>& symbols,
                      size_t without_bias = 2);
  // At the start of the kernel: collects the arguments that all calls share.
  void prepare(Builder& builder, const DimEmitter& dims, std::span<llvm::Value* const> buffers);
  void call(Builder& builder, llvm::Value* sums, llvm::Value* row, llvm::Value* rows, llvm::Value* column,
            llvm::Value* columns) const;

 private:
  loops::Kernel kernel_;
  std::vector<std::string> symbols_;
  llvm::Function* function_;
  llvm::Value* buffers_ = nullptr;  // arrays on the stack
  llvm::Value* values_ = nullptr;
};

}  // namespace ingot::core::cpu
