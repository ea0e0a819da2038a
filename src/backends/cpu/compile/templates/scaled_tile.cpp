// SPDX-License-Identifier: Apache-2.0
#include "backends/cpu/compile/templates/scaled_tile.h"

#include "backends/cpu/compile/llvm/elements.h"

namespace ingot::core::cpu {
namespace {

constexpr int64_t kFetchedAhead = 4096;  // bytes, as for plain tiles

int elements_per_byte(const TileShape& tile) { return tile.b == DType::kU4 ? 2 : 1; }

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

  // Whether zero points are subtracted as integers, which more units of a core do than subtract floats.
  bool centers_integers() const {
    return (is_integer(tile.b) || tile.b == DType::kU4) &&
           (!scales.zero_point || is_integer(*scales.zero_point));
  }
  llvm::Type* words() const {
    return llvm::FixedVectorType::get(builder.getInt32Ty(), static_cast<unsigned>(tile.lanes));
  }
  llvm::Value* as_words(DType stored, llvm::Value* place) const {
    llvm::Value* loaded = load_lanes(builder, stored, place, tile.lanes);
    return builder.CreateIntCast(loaded, words(), is_signed(stored));
  }
  llvm::Value* centered(llvm::Value* numbers, llvm::Value* center) const {
    if (center != nullptr && centers_integers()) numbers = builder.CreateSub(numbers, center);
    if (numbers->getType()->isIntOrIntVectorTy()) numbers = builder.CreateSIToFP(numbers, vector());
    return center == nullptr || centers_integers() ? numbers : builder.CreateFSub(numbers, center);
  }

  // The elements of vector `v`, without their zero point, for the depths from `k` on that share its bytes.
  std::vector<llvm::Value*> numbers(llvm::Value* panel, llvm::Value* k, int v, llvm::Value* center) const {
    llvm::Value* row = builder.CreateUDiv(k, number(elements_per_byte(tile)));
    const DType stored = tile.b == DType::kU4 ? DType::kU8 : tile.b;
    llvm::Value* place = byte_at(panel, builder.CreateNSWMul(row, number(row_bytes(stored, tile.columns()))));
    place = builder.CreateConstGEP1_64(builder.getInt8Ty(), place, v * row_bytes(stored, tile.lanes));
    if (is_floating(stored)) return {centered(load_as_float(builder, stored, place, tile.lanes), center)};
    llvm::Value* bytes = as_words(stored, place);
    if (tile.b != DType::kU4) return {centered(bytes, center)};
    return {centered(builder.CreateAnd(bytes, 15), center), centered(builder.CreateLShr(bytes, 4), center)};
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
  // The zero points with their offset; null: all are 0.
  llvm::Value* center(const ScaledPanel& panel, llvm::Value* block, int v) const {
    if (!scales.zero_point && scales.offset == 0) return nullptr;
    llvm::Value* offset = centers_integers() ? llvm::ConstantInt::get(words(), scales.offset, true)
                                             : splat(static_cast<double>(scales.offset));
    if (!scales.zero_point) return offset;
    llvm::Value* place = of_block(*scales.zero_point, panel.zero_points, block, v);
    if (centers_integers()) return builder.CreateAdd(as_words(*scales.zero_point, place), offset);
    return builder.CreateFAdd(load_as_float(builder, *scales.zero_point, place, tile.lanes), offset);
  }
  std::vector<llvm::Value*> centers(const ScaledPanel& panel, llvm::Value* block) const {
    std::vector<llvm::Value*> result;
    for (int v = 0; v < tile.vectors; ++v) result.push_back(center(panel, block, v));
    return result;
  }
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

  // Additions take four cycles, and two are started in each: one row of two vectors needs four
  // accumulators for each.
  int chains() const { return tile.rows == 1 ? 4 : tile.rows == 2 ? 2 : 1; }
  int64_t depth_per_step() const { return std::max(chains(), elements_per_byte(tile)); }
  size_t at(int row, int v, int64_t chain) const {
    return (static_cast<size_t>(chain) * tile.rows + row) * tile.vectors + v;
  }

  llvm::Value* multiply_add(llvm::Value* a, llvm::Value* b, llvm::Value* sum) const {
    return builder().CreateIntrinsic(llvm::Intrinsic::fma, {reader.vector()}, {a, b, sum});
  }
  llvm::Value* element(int row, llvm::Value* k) const {
    llvm::Value* place = builder().CreateGEP(builder().getFloatTy(), rows[row], k);
    return builder().CreateVectorSplat(tile.lanes, builder().CreateLoad(builder().getFloatTy(), place));
  }

  Sums step(llvm::Value* k, const Sums& centers, std::span<llvm::Value* const> before) const {
    Sums sums(before.begin(), before.end());
    const int together = elements_per_byte(tile);
    for (int64_t first = 0; first < depth_per_step(); first += together) {
      llvm::Value* from = builder().CreateNSWAdd(k, reader.number(first));
      for (int v = 0; v < tile.vectors; ++v) {
        const std::vector<llvm::Value*> numbers = reader.numbers(panel.numbers, from, v, centers[v]);
        for (int i = 0; i < together; ++i) {
          llvm::Value* own = builder().CreateNSWAdd(k, reader.number(first + i));
          for (int row = 0; row < tile.rows; ++row) {
            llvm::Value*& sum = sums[at(row, v, (first + i) % chains())];
            sum = multiply_add(element(row, own), numbers[i], sum);
          }
        }
      }
    }
    return sums;
  }

  void prefetch(llvm::Value* block) const {
    const int64_t bytes = reader.scales.block * tile.step_bytes();
    llvm::Value* ahead = builder().CreateNSWAdd(builder().CreateNSWMul(block, reader.number(bytes)),
                                                reader.number(kFetchedAhead));
    for (int64_t line = 0; line < bytes; line += kCacheLine) {
      llvm::Value* address =
          reader.byte_at(panel.numbers, builder().CreateNSWAdd(ahead, reader.number(line)));
      builder().CreateIntrinsic(
          llvm::Intrinsic::prefetch, {builder().getPtrTy()},
          {address, builder().getInt32(0), builder().getInt32(3), builder().getInt32(1)});
    }
  }

  // Accumulators of one block without its scale: [rows][vectors].
  Sums block_sums(llvm::Value* block) const {
    const Sums centers = reader.centers(panel, block);
    llvm::Value* begin = builder().CreateNSWMul(block, reader.number(reader.scales.block));
    const Sums none(static_cast<size_t>(chains()) * tile.rows * tile.vectors, reader.splat(0));
    llvm::Value* end = builder().CreateNSWAdd(begin, reader.number(reader.scales.block));
    Sums sums = emit_carrying_loop(
        builder(), begin, end, depth_per_step(), none,
        [&](llvm::Value* k, std::span<llvm::Value* const> now) { return step(k, centers, now); });
    const size_t own = static_cast<size_t>(tile.rows) * tile.vectors;
    for (size_t i = own; i < sums.size(); ++i) sums[i % own] = builder().CreateFAdd(sums[i % own], sums[i]);
    sums.resize(own);
    return sums;
  }

  Sums add_block(llvm::Value* block, std::span<llvm::Value* const> before) const {
    prefetch(block);
    Sums totals(before.begin(), before.end());
    const Sums sums = block_sums(block);
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
  const int together = elements_per_byte(tile);
  auto store = [&](llvm::Value* k, int v, llvm::Value* value) {
    llvm::Value* place = scaffold.float_at(to, scaffold.times(k, tile.columns()));
    store_lanes(builder, DType::kF32, value,
                builder.CreateConstGEP1_64(builder.getFloatTy(), place, v * tile.lanes));
  };
  emit_loop(builder, scaffold.number(0), scaffold.number(depth / scales.block), 1, [&](llvm::Value* block) {
    const std::vector<llvm::Value*> centers = reader.centers(from, block);
    std::vector<llvm::Value*> scale;
    for (int v = 0; v < tile.vectors; ++v) scale.push_back(reader.scale(from, block, v));
    llvm::Value* begin = scaffold.times(block, scales.block);
    emit_loop(builder, begin, scaffold.plus(begin, scales.block), together, [&](llvm::Value* k) {
      for (int v = 0; v < tile.vectors; ++v) {
        const std::vector<llvm::Value*> numbers = reader.numbers(from.numbers, k, v, centers[v]);
        for (int i = 0; i < together; ++i)
          store(scaffold.plus(k, i), v, builder.CreateFMul(numbers[i], scale[v]));
      }
    });
  });
}

}  // namespace ingot::core::cpu
