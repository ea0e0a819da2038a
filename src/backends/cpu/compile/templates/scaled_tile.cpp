// SPDX-License-Identifier: Apache-2.0
#include "backends/cpu/compile/templates/scaled_tile.h"

#include <llvm/IR/IntrinsicsX86.h>

#include "backends/cpu/compile/llvm/elements.h"

namespace ingot::core::cpu {
namespace {

constexpr int64_t kFetchedAhead = 4096;  // bytes, as for plain tiles

// Elements of a column that are loaded together: a word of 32 bits of those that are packed.
int elements_together(const TileShape& tile) { return tile.b == DType::kU4 ? 8 : 1; }

// Reads panels.
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
  llvm::Value* load(llvm::Value* panel, llvm::Value* k, int v) const {
    llvm::Value* row = byte_at(panel, builder.CreateNSWMul(k, number(tile.step_bytes())));
    const int64_t bytes = tile.step_bytes() / tile.vectors * elements_together(tile);
    llvm::Value* place = builder.CreateConstGEP1_64(builder.getInt8Ty(), row, v * bytes);
    return is_packed() ? load_lanes(builder, DType::kI32, place, tile.lanes)
                       : load_as_float(builder, tile.b, place, tile.lanes);
  }

  // Element `i` of each lane of what `load` returned. The look-up ignores the bits above an element's four.
  llvm::Value* element(llvm::Value* loaded, int i) const {
    if (!is_packed()) return loaded;
    llvm::Value* code = builder.CreateLShr(loaded, 4 * i);
    if (looks_up())
      return builder.CreateIntrinsic(llvm::Intrinsic::x86_avx512_permvar_sf_512, {}, {values(), code});
    return builder.CreateSIToFP(builder.CreateAnd(code, 15), vector());
  }
  llvm::Value* values() const {
    std::vector<llvm::Constant*> result;
    for (int64_t code = 0; code < tile.lanes; ++code)
      result.push_back(
          llvm::ConstantFP::get(builder.getFloatTy(), static_cast<double>(code - scales.offset)));
    return llvm::ConstantVector::get(result);
  }

  // Vector `v` of the parameters of a block.
  llvm::Value* of_block(DType stored, llvm::Value* parameters, llvm::Value* block, int v) const {
    llvm::Value* place =
        byte_at(parameters, builder.CreateNSWMul(block, number(row_bytes(stored, tile.columns()))));
    return builder.CreateConstGEP1_64(builder.getInt8Ty(), place, v * row_bytes(stored, tile.lanes));
  }
  llvm::Value* scale(const ScaledPanel& panel, llvm::Value* block, int v) const {
    return load_as_float(builder, scales.scale, of_block(scales.scale, panel.scales, block, v), tile.lanes);
  }
  // What is to be subtracted of the elements of a block; null: nothing.
  llvm::Value* center(const ScaledPanel& panel, llvm::Value* block, int v) const {
    const int64_t offset = looks_up() ? 0 : scales.offset;
    llvm::Value* numbers = splat(static_cast<double>(offset));
    if (!scales.zero_point) return offset == 0 ? nullptr : numbers;
    llvm::Value* place = of_block(*scales.zero_point, panel.zero_points, block, v);
    return builder.CreateFAdd(load_as_float(builder, *scales.zero_point, place, tile.lanes), numbers);
  }
  bool has_centers() const { return scales.zero_point || (scales.offset != 0 && !looks_up()); }
};

// Emits the body of one microkernel.
struct ScaledTileBody {
  PanelReader reader;
  TileShape tile;  // with the rows of this function
  int64_t depth;
  ScaledPanel panel;
  std::vector<llvm::Value*> rows;  // of A

  using Sums = std::vector<llvm::Value*>;
  Builder& builder() const { return reader.builder; }

  // Additions take four cycles, and two are started in each: eight accumulators are never waited for. More
  // would spill.
  int chains() const {
    const int accumulators = tile.rows * tile.vectors;
    return accumulators >= 8 ? 1 : accumulators >= 4 ? 2 : 4;
  }
  int64_t depth_per_step() const { return std::max(chains(), elements_together(tile)); }
  size_t at(int row, int v, int64_t chain) const {
    return (static_cast<size_t>(chain) * tile.rows + row) * tile.vectors + v;
  }

  llvm::Value* multiply_add(llvm::Value* a, llvm::Value* b, llvm::Value* sum) const {
    return builder().CreateIntrinsic(llvm::Intrinsic::fma, {reader.vector()}, {a, b, sum});
  }
  llvm::Value* place_in_row(int row, llvm::Value* k) const {
    return builder().CreateGEP(builder().getFloatTy(), rows[row], k);
  }
  llvm::Value* spread(int row, llvm::Value* k) const {
    return builder().CreateVectorSplat(tile.lanes,
                                       builder().CreateLoad(builder().getFloatTy(), place_in_row(row, k)));
  }

  Sums step(llvm::Value* k, std::span<llvm::Value* const> before) const {
    Sums sums(before.begin(), before.end());
    const int together = elements_together(tile);
    for (int64_t first = 0; first < depth_per_step(); first += together) {
      Sums loaded;
      for (int v = 0; v < tile.vectors; ++v)
        loaded.push_back(reader.load(panel.numbers, builder().CreateNSWAdd(k, reader.number(first)), v));
      for (int i = 0; i < together; ++i) multiply(loaded, i, k, first + i, sums);
    }
    return sums;
  }

  // Adds the products of depth `k` + `ahead`, whose elements are the i-th of what was loaded.
  void multiply(const Sums& loaded, int i, llvm::Value* k, int64_t ahead, Sums& sums) const {
    Sums elements;
    for (llvm::Value* each : loaded) elements.push_back(reader.element(each, i));
    for (int row = 0; row < tile.rows; ++row) {
      llvm::Value* a = spread(row, builder().CreateNSWAdd(k, reader.number(ahead)));
      for (int v = 0; v < tile.vectors; ++v) {
        llvm::Value*& sum = sums[at(row, v, ahead % chains())];
        sum = multiply_add(a, elements[v], sum);
      }
    }
  }

  void prefetch(llvm::Value* block) const {
    const int64_t bytes = reader.scales.block * tile.step_bytes();
    llvm::Value* ahead = builder().CreateNSWAdd(builder().CreateNSWMul(block, reader.number(bytes)),
                                                reader.number(kFetchedAhead));
    for (int64_t line = 0; line < bytes; line += kCacheLine)
      prefetch_line(builder(),
                    reader.byte_at(panel.numbers, builder().CreateNSWAdd(ahead, reader.number(line))), 3);
  }

  // Accumulators of one block without its scale and zero point: [rows][vectors].
  Sums block_sums(llvm::Value* begin) const {
    const Sums none(static_cast<size_t>(chains()) * tile.rows * tile.vectors, reader.splat(0));
    llvm::Value* end = builder().CreateNSWAdd(begin, reader.number(reader.scales.block));
    Sums sums =
        emit_carrying_loop(builder(), begin, end, depth_per_step(), none,
                           [&](llvm::Value* k, std::span<llvm::Value* const> now) { return step(k, now); });
    const size_t own = static_cast<size_t>(tile.rows) * tile.vectors;
    for (size_t i = own; i < sums.size(); ++i) sums[i % own] = builder().CreateFAdd(sums[i % own], sums[i]);
    sums.resize(own);
    return sums;
  }

  // The sum of a row of A over a block, in all lanes.
  llvm::Value* sum_of_row(int row, llvm::Value* begin) const {
    llvm::Value* sum = nullptr;
    for (int64_t k = 0; k < reader.scales.block; k += tile.lanes) {
      llvm::Value* place = place_in_row(row, builder().CreateNSWAdd(begin, reader.number(k)));
      llvm::Value* part = load_lanes(builder(), DType::kF32, place, tile.lanes);
      sum = sum == nullptr ? part : builder().CreateFAdd(sum, part);
    }
    llvm::CallInst* total =
        builder().CreateFAddReduce(llvm::ConstantFP::get(builder().getFloatTy(), -0.0), sum);
    total->setHasAllowReassoc(true);
    return builder().CreateVectorSplat(tile.lanes, total);
  }

  // sum(a (q - z)) is sum(a q) - z sum(a): a subtraction per block and column, none per element.
  void subtract_centers(llvm::Value* block, llvm::Value* begin, Sums& sums) const {
    if (!reader.has_centers()) return;
    for (int row = 0; row < tile.rows; ++row) {
      llvm::Value* minus = builder().CreateFNeg(sum_of_row(row, begin));
      for (int v = 0; v < tile.vectors; ++v) {
        llvm::Value*& sum = sums[at(row, v, 0)];
        sum = multiply_add(reader.center(panel, block, v), minus, sum);
      }
    }
  }

  Sums add_block(llvm::Value* block, std::span<llvm::Value* const> before) const {
    prefetch(block);
    Sums totals(before.begin(), before.end());
    llvm::Value* begin = builder().CreateNSWMul(block, reader.number(reader.scales.block));
    Sums sums = block_sums(begin);
    subtract_centers(block, begin, sums);
    for (size_t i = 0; i < totals.size(); ++i) {
      llvm::Value* scale = reader.scale(panel, block, static_cast<int>(i) % tile.vectors);
      totals[i] = multiply_add(scale, sums[i], totals[i]);
    }
    return totals;
  }

  void emit(llvm::Value* sums) const {
    const Sums none(static_cast<size_t>(tile.rows) * tile.vectors, reader.splat(0));
    const Sums totals = emit_carrying_loop(
        builder(), reader.number(0), reader.number(depth / reader.scales.block), 1, none,
        [&](llvm::Value* block, std::span<llvm::Value* const> now) { return add_block(block, now); });
    for (size_t i = 0; i < totals.size(); ++i)
      builder().CreateStore(totals[i], builder().CreateConstGEP1_64(reader.vector(), sums, i));
  }
};

}  // namespace

bool has_scaled_tiles(const TileShape& tile, const BlockScales& scales) {
  constexpr int64_t kStep = 4;  // of one row
  return scales.block > 0 && scales.block % tile.lanes == 0 && scales.block % kStep == 0;
}

ScaledTileFunctions::ScaledTileFunctions(Code& code, const TileShape& tile, const BlockScales& scales,
                                         int64_t depth, std::optional<int64_t> all_rows)
    : row_counts_(tile_row_counts(tile, all_rows)) {
  llvm::LLVMContext& context = *code.context;
  llvm::Type* pointer = llvm::PointerType::get(context, 0);
  auto* type = llvm::FunctionType::get(llvm::Type::getVoidTy(context),
                                       {pointer, pointer, pointer, pointer, pointer}, false);
  for (const int rows : row_counts_) {
    llvm::Function* function = create_function(code, type, "scaled_tile_" + std::to_string(rows));
    function->addFnAttr(llvm::Attribute::NoInline);
    Builder builder(llvm::BasicBlock::Create(context, "entry", function));
    TileShape part = tile;
    part.rows = rows;
    ScaledTileBody body{{builder, tile, scales},
                        part,
                        depth,
                        {function->getArg(1), function->getArg(2), function->getArg(3)},
                        {}};
    for (int row = 0; row < rows; ++row)
      body.rows.push_back(
          builder.CreateLoad(pointer, builder.CreateConstGEP1_64(pointer, function->getArg(0), row)));
    body.emit(function->getArg(4));
    builder.CreateRetVoid();
    functions_.push_back(function);
  }
}

void ScaledTileFunctions::call(Builder& builder, llvm::Value* rows, llvm::Value* table,
                               const ScaledPanel& panel, llvm::Value* sums) const {
  std::function<void(size_t)> choose = [&](size_t i) {
    auto invoke = [&] {
      builder.CreateCall(functions_[i], {table, panel.numbers, panel.scales, panel.zero_points, sums});
    };
    if (i + 1 == row_counts_.size()) return invoke();
    emit_if(builder, builder.CreateICmpSGT(rows, builder.getInt64(row_counts_[i + 1])), invoke,
            [&] { choose(i + 1); });
  };
  choose(0);
}

void dequantize_panel(Scaffold& scaffold, const TileShape& tile, const BlockScales& scales, int64_t depth,
                      const ScaledPanel& from, llvm::Value* to) {
  Builder& builder = scaffold.builder;
  const PanelReader reader{builder, tile, scales};
  const int together = elements_together(tile);
  auto store = [&](llvm::Value* k, int v, llvm::Value* value) {
    llvm::Value* place = scaffold.float_at(to, scaffold.times(k, tile.columns()));
    store_lanes(builder, DType::kF32, value,
                builder.CreateConstGEP1_64(builder.getFloatTy(), place, v * tile.lanes));
  };
  emit_loop(builder, scaffold.number(0), scaffold.number(depth / scales.block), 1, [&](llvm::Value* block) {
    std::vector<llvm::Value*> center, scale;
    for (int v = 0; v < tile.vectors; ++v) {
      center.push_back(reader.center(from, block, v));
      scale.push_back(reader.scale(from, block, v));
    }
    llvm::Value* begin = scaffold.times(block, scales.block);
    emit_loop(builder, begin, scaffold.plus(begin, scales.block), together, [&](llvm::Value* k) {
      for (int v = 0; v < tile.vectors; ++v) {
        llvm::Value* loaded = reader.load(from.numbers, k, v);
        for (int i = 0; i < together; ++i) {
          llvm::Value* value = reader.element(loaded, i);
          if (center[v] != nullptr) value = builder.CreateFSub(value, center[v]);
          store(scaffold.plus(k, i), v, builder.CreateFMul(value, scale[v]));
        }
      }
    });
  });
}

}  // namespace ingot::core::cpu
