// SPDX-License-Identifier: Apache-2.0
#include "backends/cpu/compile/templates/epilogue.h"

#include "backends/cpu/compile/llvm/loops_emitter.h"
#include "backends/cpu/compile/templates/kernel_template.h"
#include "loops/rewrite.h"
#include "support/error.h"

namespace ingot::core::cpu {

namespace {

using Replacements = std::map<std::string, Dim>;

// The result's loop variables in terms of the tile's.
Replacements index_in_tile(const loops::Kernel& epilogue, size_t column_dim) {
  Replacements result;
  Dim rest = Dim::symbol(kTileRow) + Dim::symbol("$i");
  for (size_t dim = epilogue.parallel.size(); dim-- > 0;) {
    const loops::Loop& loop = epilogue.parallel[dim];
    if (dim == column_dim) {
      result[loop.variable] = Dim::symbol(kTileColumn) + Dim::symbol("$j");
      continue;
    }
    bool outermost = dim == 0 || (dim == 1 && column_dim == 0);
    Dim extent = loop.extent == Dim(0) ? 1 : loop.extent;  // for an empty result, no index is ever computed
    result[loop.variable] = outermost ? rest : modulo(rest, extent);
    rest = floor_divide(rest, extent);
  }
  return result;
}

loops::Expr move_to_tile(const loops::Expr& value, const Replacements& replacements, const loops::Expr& sum) {
  auto moved = loops::rewrite(value, [&](const loops::Expr& node) {
    bool is_result = node->kind == loops::ExprNode::Kind::kLoad && node->buffer == 0;
    return is_result ? sum : node;
  });
  return loops::substitute(moved, replacements);
}

// A number that was an integer, times a scale.
bool is_scaled_integer(const loops::Expr& value) {
  if (value->kind != loops::ExprNode::Kind::kBinary || value->binary != loops::Binary::kMultiply)
    return false;
  const loops::Expr& number = value->operands[0];
  return number->kind == loops::ExprNode::Kind::kConvert && is_integer(number->operands[0]->dtype);
}

loops::Expr fused_sum(const loops::Expr& node) {
  const bool is_sum = node->kind == loops::ExprNode::Kind::kBinary && node->binary == loops::Binary::kAdd &&
                      node->dtype == DType::kF32;
  if (!is_sum) return node;
  for (const size_t i : {0, 1}) {
    const loops::Expr& product = node->operands[i];
    if (is_scaled_integer(product))
      return loops::fma(product->operands[0], product->operands[1], node->operands[1 - i]);
  }
  return node;
}

PreparedKernel prepare_tile(const loops::Kernel& tile_kernel, CpuFeatures features) {
  PreparedKernel prepared = prepare_in_order(tile_kernel, features);
  prepared.whole_range = true;
  return prepared;
}

}  // namespace

loops::Kernel tile_epilogue(const loops::Kernel& epilogue, const EpilogueShape& shape) {
  loops::Kernel kernel = epilogue;
  Dim i = Dim::symbol("$i"), j = Dim::symbol("$j");
  Dim columns = shape.whole_columns ? Dim(shape.tile_columns) : Dim::symbol(kTileColumns);
  kernel.parallel = {{"$i", Dim::symbol(kTileRows)}, {"$j", columns}};
  kernel.buffers[0].type = {shape.sum, {Dim::symbol(kTileRows), shape.tile_columns}, {}};
  Replacements replacements = index_in_tile(epilogue, shape.column_dim);
  loops::Expr sum = loops::load(0, shape.sum, {i, j});
  if (shape.bias) {
    int bias = static_cast<int>(kernel.buffers.size());
    kernel.buffers.push_back({"bias", *shape.bias, loops::Access::kRead});
    sum = loops::binary(loops::Binary::kAdd, sum,
                        loops::load(bias, shape.bias->dtype, {Dim::symbol(kTileColumn) + j}));
  }
  for (loops::Stage& stage : kernel.stages) {
    stage.value = move_to_tile(stage.value, replacements, sum);
    if (!stage.store) continue;
    for (Dim& dim : stage.store->index) dim = substitute(dim, replacements);
  }
  for (const char* symbol : {kTileRow, kTileColumn}) kernel.symbols[symbol] = {};
  kernel.symbols[kTileRows].range = {1, shape.tile_rows};
  kernel.symbols[kTileColumns].range = {1, shape.tile_columns};
  return kernel;
}

loops::Kernel epilogue_of_integers(const loops::Kernel& epilogue, const Target& target) {
  loops::Kernel kernel = epilogue;
  if (target.numerics == Target::Numerics::kStrict) return kernel;
  for (loops::Stage& stage : kernel.stages) stage.value = loops::rewrite(stage.value, fused_sum);
  return kernel;
}

EpilogueFunction::EpilogueFunction(Code& code, const loops::Kernel& tile_kernel)
    : kernel_(tile_kernel),
      symbols_(loops::free_symbols(tile_kernel)),
      function_(emit_loops_function(code, prepare_tile(tile_kernel, code.features), "epilogue")) {}

void EpilogueFunction::load_arguments(Scaffold& scaffold, size_t operands,
                                      const std::vector<std::string>& symbols, size_t without_bias) {
  const bool has_bias = operands > without_bias;
  const size_t own =
      kernel_.buffers.size() - 1 - (has_bias ? 1 : 0);  // a bias is the tile kernel's last buffer
  scaffold.load_arguments(operands + own, symbols);
  const auto& buffers = scaffold.buffers;
  std::vector<llvm::Value*> behind(buffers.begin() + static_cast<int64_t>(operands), buffers.end());
  if (has_bias) behind.push_back(buffers[without_bias]);
  prepare(scaffold.builder, scaffold.dims, behind);
}

void EpilogueFunction::prepare(Builder& builder, const DimEmitter& dims,
                               std::span<llvm::Value* const> buffers) {
  invariant(buffers.size() + 1 == kernel_.buffers.size(), "an epilogue got the wrong number of buffers");
  llvm::Type* pointer = builder.getPtrTy();
  buffers_ = stack_array(builder, pointer, static_cast<int64_t>(kernel_.buffers.size()), sizeof(void*));
  values_ =
      stack_array(builder, builder.getInt64Ty(), static_cast<int64_t>(symbols_.size()) + 1, sizeof(int64_t));
  for (size_t i = 0; i < buffers.size(); ++i) {
    builder.CreateStore(buffers[i], builder.CreateConstGEP1_64(pointer, buffers_, i + 1));
  }
  for (size_t i = 0; i < symbols_.size(); ++i) {
    auto found = dims.values.find(symbols_[i]);
    if (found == dims.values.end()) continue;  // of the tile: set by call()
    builder.CreateStore(found->second, builder.CreateConstGEP1_64(builder.getInt64Ty(), values_, i));
  }
}

void EpilogueFunction::call(Builder& builder, llvm::Value* sums, llvm::Value* row, llvm::Value* rows,
                            llvm::Value* column, llvm::Value* columns) const {
  std::map<std::string, llvm::Value*> tile{
      {kTileRow, row}, {kTileRows, rows}, {kTileColumn, column}, {kTileColumns, columns}};
  builder.CreateStore(sums, buffers_);
  for (size_t i = 0; i < symbols_.size(); ++i) {
    auto found = tile.find(symbols_[i]);
    if (found == tile.end()) continue;
    builder.CreateStore(found->second, builder.CreateConstGEP1_64(builder.getInt64Ty(), values_, i));
  }
  llvm::Value* points = builder.CreateNSWMul(rows, columns);
  llvm::Value* no_scratch = llvm::ConstantPointerNull::get(builder.getPtrTy());
  builder.CreateCall(function_, {buffers_, values_, builder.getInt64(0), points, no_scratch});
}

}  // namespace ingot::core::cpu
