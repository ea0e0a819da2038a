// SPDX-License-Identifier: Apache-2.0
#include "backends/cpu/compile/templates/fixed_tile.h"

#include <llvm/IR/IntrinsicsX86.h>

#include <algorithm>
#include <numeric>

#include "backends/cpu/compile/llvm/elements.h"
#include "backends/cpu/compile/templates/panel_reader.h"

namespace ingot::core::cpu {
namespace {

// Rows and vectors of a tile that are multiplied together.
struct TilePart {
  int row, rows, vector, vectors;
};

// Three sums for each row and vector must fit the registers, beside what they are added to: two rows take all
// vectors at once, which share the broadcasts of A, and more rows one vector, which shares the words.
std::vector<TilePart> parts_of(const TileShape& tile) {
  if (tile.rows <= 2) return {{0, tile.rows, 0, tile.vectors}};
  constexpr int kRows = 4;
  std::vector<TilePart> parts;
  for (int row = 0; row < tile.rows; row += kRows) {
    for (int v = 0; v < tile.vectors; ++v) parts.push_back({row, std::min(kRows, tile.rows - row), v, 1});
  }
  return parts;
}

struct FixedTileBody {
  PanelReader reader;
  TileShape tile;  // with the rows of this function
  const FixedRows& fixed;
  llvm::Value* a;
  ScaledPanel panel;

  using Sums = std::vector<llvm::Value*>;
  Builder& builder() const { return reader.builder; }
  llvm::Value* number(int64_t value) const { return reader.number(value); }
  llvm::Value* plus(llvm::Value* value, int64_t more) const {
    return builder().CreateNSWAdd(value, number(more));
  }
  llvm::Value* times(llvm::Value* value, int64_t factor) const {
    return builder().CreateNSWMul(value, number(factor));
  }
  llvm::Type* words() const { return stored_type(builder(), DType::kI32, tile.lanes); }
  llvm::Value* spread(llvm::Type* element, llvm::Value* place) const {
    return builder().CreateVectorSplat(tile.lanes, builder().CreateLoad(element, place));
  }
  llvm::Value* multiply_add(llvm::Value* x, llvm::Value* y, llvm::Value* sum) const {
    return builder().CreateIntrinsic(llvm::Intrinsic::fma, {reader.vector()}, {x, y, sum});
  }
  llvm::Value* add_quads(llvm::Value* sum, llvm::Value* numbers, llvm::Value* digits) const {
    return builder().CreateIntrinsic(llvm::Intrinsic::x86_avx512_vpdpbusd_512, {}, {sum, numbers, digits});
  }

  // Digits of the eight elements from depth `k` on; `half`: the even or the odd ones.
  llvm::Value* digits(int row, llvm::Value* k, int digit, int half) const {
    llvm::Value* place = reader.byte_at(a, times(k, kDigits));
    const int64_t own = row * fixed.row_bytes() + (int64_t{2} * digit + half) * 4;
    return spread(builder().getInt32Ty(), builder().CreateConstGEP1_64(builder().getInt8Ty(), place, own));
  }
  llvm::Value* parameter(int row, llvm::Value* block, FixedParameter which) const {
    const int64_t size = sizeof(float);
    llvm::Value* place = reader.byte_at(a, times(block, kFixedParameters * size));
    const int64_t own = row * fixed.row_bytes() + fixed.digit_bytes() + which * size;
    return spread(builder().getFloatTy(), builder().CreateConstGEP1_64(builder().getInt8Ty(), place, own));
  }

  // sums: [rows][vectors][kDigits] of the part.
  void add_words(const TilePart& part, llvm::Value* k, Sums& sums) const {
    std::vector<llvm::Value*> halves[2];
    for (int v = 0; v < part.vectors; ++v) {
      llvm::Value* loaded = reader.load(panel.numbers, k, part.vector + v);
      halves[0].push_back(builder().CreateAnd(loaded, 0x0f0f0f0f));
      halves[1].push_back(builder().CreateAnd(builder().CreateLShr(loaded, 4), 0x0f0f0f0f));
    }
    for (const int half : {0, 1}) {
      for (int row = 0; row < part.rows; ++row) {
        for (int digit = 0; digit < kDigits; ++digit) {
          llvm::Value* of_a = digits(part.row + row, k, digit, half);
          for (int v = 0; v < part.vectors; ++v) {
            llvm::Value*& sum = sums[(static_cast<size_t>(row) * part.vectors + v) * kDigits + digit];
            sum = add_quads(sum, halves[half][v], of_a);
          }
        }
      }
    }
  }

  Sums digit_sums(const TilePart& part, llvm::Value* begin) const {
    constexpr int64_t kWord = FixedRows::kOfWords, kUnrolled = 4 * kWord;
    const int64_t step = std::gcd(fixed.block, kUnrolled);
    Sums sums(static_cast<size_t>(part.rows) * part.vectors * kDigits, llvm::Constant::getNullValue(words()));
    const auto add = [&](llvm::Value* k, std::span<llvm::Value* const> before) {
      Sums now(before.begin(), before.end());
      for (int64_t word = 0; word < step; word += kWord) add_words(part, plus(k, word), now);
      return now;
    };
    if (step == fixed.block) return add(begin, sums);
    return emit_carrying_loop(builder(), begin, plus(begin, fixed.block), step, sums, add);
  }

  // (65536 S2 + 256 S1 + S0, less the zero points' share) in the block's unit.
  llvm::Value* block_sum(int row, int v, llvm::Value* block, llvm::Value* scale_block,
                         std::span<llvm::Value* const> of_digits) const {
    llvm::Value* low = builder().CreateAdd(builder().CreateShl(of_digits[1], 8), of_digits[0]);
    llvm::Value* sum = builder().CreateSIToFP(low, reader.vector());
    llvm::Value* base = reader.scales.offset == 0 ? reader.splat(0) : parameter(row, block, kMinusBase);
    sum = multiply_add(sum, parameter(row, block, kUnit), base);
    sum = multiply_add(builder().CreateSIToFP(of_digits[2], reader.vector()),
                       parameter(row, block, kHighUnit), sum);
    if (!reader.scales.zero_point) return sum;
    return multiply_add(reader.zero_point(panel, scale_block, v), parameter(row, block, kMinusAll), sum);
  }

  Sums add_block(llvm::Value* block, std::span<llvm::Value* const> before) const {
    reader.prefetch(panel, block, fixed.block);
    Sums totals(before.begin(), before.end());
    llvm::Value* begin = times(block, fixed.block);
    const int64_t shared = reader.scales.block / fixed.block;  // blocks with the same scale
    llvm::Value* scale_block = shared == 1 ? block : builder().CreateUDiv(block, number(shared));
    for (const TilePart& part : parts_of(tile)) {
      const Sums sums = digit_sums(part, begin);
      for (int row = 0; row < part.rows; ++row) {
        for (int v = 0; v < part.vectors; ++v) {
          const auto own =
              std::span(sums).subspan((static_cast<size_t>(row) * part.vectors + v) * kDigits, kDigits);
          llvm::Value*& total = totals[static_cast<size_t>(part.row + row) * tile.vectors + part.vector + v];
          llvm::Value* sum = block_sum(part.row + row, part.vector + v, block, scale_block, own);
          total = multiply_add(reader.scale(panel, scale_block, part.vector + v), sum, total);
        }
      }
    }
    return totals;
  }

  void emit(llvm::Value* sums) const {
    const Sums none(static_cast<size_t>(tile.rows) * tile.vectors, reader.splat(0));
    const Sums totals = emit_carrying_loop(
        builder(), number(0), number(fixed.depth / fixed.block), 1, none,
        [&](llvm::Value* block, std::span<llvm::Value* const> now) { return add_block(block, now); });
    for (size_t i = 0; i < totals.size(); ++i)
      builder().CreateStore(totals[i], builder().CreateConstGEP1_64(reader.vector(), sums, i));
  }
};

}  // namespace

bool has_fixed_tiles(const TileShape& tile, CpuFeatures features) {
  return tile.b == DType::kU4 && tile.lanes == 16 && features.has(CpuFeature::kX86V4) &&
         features.has(CpuFeature::kAvx512Vnni);
}

FixedTileFunctions::FixedTileFunctions(Code& code, const TileShape& tile, const BlockScales& scales,
                                       const FixedRows& fixed, std::optional<int64_t> all_rows)
    : functions_(
          code, panel_function_type(*code.context), "fixed_tile_{}", tile_row_counts(tile, all_rows),
          [&](Builder& builder, llvm::Function& function, int rows) {
            TileShape part = tile;
            part.rows = rows;
            FixedTileBody{{builder, tile, scales}, part, fixed, function.getArg(0), panel_in(function)}.emit(
                function.getArg(4));
          }) {}

void FixedTileFunctions::call(Builder& builder, llvm::Value* rows, llvm::Value* a, const ScaledPanel& panel,
                              llvm::Value* sums) const {
  functions_.call(builder, rows, {a, panel.numbers, panel.scales, panel.zero_points, sums});
}

}  // namespace ingot::core::cpu
