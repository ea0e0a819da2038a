// SPDX-License-Identifier: Apache-2.0
#include "backends/cpu/compile/templates/scaled_tile.h"

#include "backends/cpu/compile/llvm/elements.h"
#include "backends/cpu/compile/templates/panel_reader.h"

namespace ingot::core::cpu {
namespace {

// Emits the body of one microkernel.
struct ScaledTileBody {
  PanelReader reader;
  TileShape tile;  // with the rows of this function
  int64_t depth;
  ScaledPanel panel;
  bool centers_elements;           // rather than sums
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

  Sums step(llvm::Value* k, std::span<llvm::Value* const> before, const Sums& centers) const {
    Sums sums(before.begin(), before.end());
    const int together = elements_together(tile);
    for (int64_t first = 0; first < depth_per_step(); first += together) {
      Sums loaded;
      for (int v = 0; v < tile.vectors; ++v)
        loaded.push_back(reader.load(panel.numbers, builder().CreateNSWAdd(k, reader.number(first)), v));
      for (int i = 0; i < together; ++i) multiply(centered(loaded, i, centers), k, first + i, sums);
    }
    return sums;
  }

  // The i-th elements of what was loaded, less the centers, if there are any.
  Sums centered(const Sums& loaded, int i, const Sums& centers) const {
    Sums elements;
    for (llvm::Value* each : loaded) elements.push_back(reader.element(each, i));
    for (size_t v = 0; v < centers.size(); ++v) elements[v] = builder().CreateFSub(elements[v], centers[v]);
    return elements;
  }

  // Adds the products of depth `k` + `ahead`.
  void multiply(const Sums& elements, llvm::Value* k, int64_t ahead, Sums& sums) const {
    for (int row = 0; row < tile.rows; ++row) {
      llvm::Value* a = spread(row, builder().CreateNSWAdd(k, reader.number(ahead)));
      for (int v = 0; v < tile.vectors; ++v) {
        llvm::Value*& sum = sums[at(row, v, ahead % chains())];
        sum = multiply_add(a, elements[v], sum);
      }
    }
  }

  Sums centers_of(llvm::Value* block) const {
    Sums centers;
    for (int v = 0; centers_elements && reader.has_centers() && v < tile.vectors; ++v)
      centers.push_back(reader.center(panel, block, v));
    return centers;
  }

  // Accumulators of one block without its scale: [rows][vectors].
  Sums block_sums(llvm::Value* block, llvm::Value* begin) const {
    const Sums centers = centers_of(block);
    const Sums none(static_cast<size_t>(chains()) * tile.rows * tile.vectors, reader.splat(0));
    llvm::Value* end = builder().CreateNSWAdd(begin, reader.number(reader.scales.block));
    Sums sums = emit_carrying_loop(
        builder(), begin, end, depth_per_step(), none,
        [&](llvm::Value* k, std::span<llvm::Value* const> now) { return step(k, now, centers); });
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
    if (centers_elements || !reader.has_centers()) return;
    for (int row = 0; row < tile.rows; ++row) {
      llvm::Value* minus = builder().CreateFNeg(sum_of_row(row, begin));
      for (int v = 0; v < tile.vectors; ++v) {
        llvm::Value*& sum = sums[at(row, v, 0)];
        sum = multiply_add(reader.center(panel, block, v), minus, sum);
      }
    }
  }

  Sums add_block(llvm::Value* block, std::span<llvm::Value* const> before) const {
    reader.prefetch(panel, block, reader.scales.block);
    Sums totals(before.begin(), before.end());
    llvm::Value* begin = builder().CreateNSWMul(block, reader.number(reader.scales.block));
    Sums sums = block_sums(block, begin);
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
                                         int64_t depth, std::optional<int64_t> all_rows, Centering centering)
    : functions_(code, panel_function_type(*code.context),
                 centering == Centering::kSums ? "scaled_tile_{}" : "scaled_tile_of_any_{}",
                 tile_row_counts(tile, all_rows), [&](Builder& builder, llvm::Function& function, int rows) {
                   TileShape part = tile;
                   part.rows = rows;
                   ScaledTileBody body{{builder, tile, scales},           part, depth, panel_in(function),
                                       centering == Centering::kElements, {}};
                   llvm::Type* pointer = builder.getPtrTy();
                   for (int row = 0; row < rows; ++row)
                     body.rows.push_back(builder.CreateLoad(
                         pointer, builder.CreateConstGEP1_64(pointer, function.getArg(0), row)));
                   body.emit(function.getArg(4));
                 }) {}

void ScaledTileFunctions::call(Builder& builder, llvm::Value* rows, llvm::Value* table,
                               const ScaledPanel& panel, llvm::Value* sums) const {
  functions_.call(builder, rows, {table, panel.numbers, panel.scales, panel.zero_points, sums});
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
