// SPDX-License-Identifier: Apache-2.0
#include "backends/cpu/compile/templates/tile_shape.h"

#include <algorithm>
#include <array>
#include <span>

#include <fmt/format.h>

#include "ops/narrow_weight.h"

namespace ingot::core::cpu {

namespace {

struct Candidate {
  TileShape shape;
  double slowdown;  // time per multiply-add, relative to the best tile
};

// x86-64-v4 has 32 registers of 16 f32, v3 has 16 of 8: MR * vectors accumulators + one row of B + one
// broadcast of A must fit. 8x48 reached 96 % of the FMA roof on Zen 4, 12x32 was 10 %
// slower. The 32 registers of 4 f32 of aarch64 are taken as 16 of 8. Registers hold half as many f64.
constexpr std::array kWide{Candidate{{8, 3, 16}, 1.0}, Candidate{{6, 4, 16}, 1.0},
                           Candidate{{8, 2, 16}, 1.01}, Candidate{{8, 1, 16}, 1.1}};
// What tables look up together.
constexpr std::array kWideTables{Candidate{{6, 4, 16}, 1.0}};
constexpr std::array kNarrow{Candidate{{6, 2, 8}, 1.0}, Candidate{{4, 3, 8}, 1.02},
                             Candidate{{8, 1, 8}, 1.15}};
// Quads of bytes: pairs of registers of sums are packed to bytes by fewer instructions than single ones.
constexpr std::array kWideQuads{Candidate{{6, 4, 16}, 1.0}, Candidate{{8, 2, 16}, 1.01},
                                Candidate{{8, 3, 16}, 1.03}, Candidate{{8, 1, 16}, 1.1}};
// Bytes that are multiplied as i16: two registers for each vector of B, and two for A's broadcast.
constexpr std::array kWideShorts{Candidate{{6, 3, 16}, 1.0}, Candidate{{8, 2, 16}, 1.0},
                                 Candidate{{8, 1, 16}, 1.1}};
constexpr std::array kNarrowShorts{Candidate{{4, 2, 8}, 1.0}, Candidate{{8, 1, 8}, 1.1}};

// Registers of sums: two by two, or two for few columns, which wait for the products before them.
constexpr std::array kMatrices{Candidate{{32, 2, 16}, 1.0}, Candidate{{32, 1, 16}, 1.4}};

std::span<const Candidate> candidates_for(const TileShape& tile, CpuFeatures features) {
  const bool is_wide = features.has(CpuFeature::kX86V4);
  if (tile.by_matrices) return kMatrices;
  if (tile.by_tables) return kWideTables;
  if (tile.a == DType::kU8 && !tile.sums_quads)
    return is_wide ? std::span<const Candidate>(kWideShorts) : kNarrowShorts;
  if (tile.sums_quads) return kWideQuads;
  return is_wide ? std::span<const Candidate>(kWide) : kNarrow;
}

}  // namespace

bool multiplies_matrices(DType a, DType b, CpuFeatures features) {
  if (!features.has(CpuFeature::kX86V4) || !features.has(CpuFeature::kAmxTile)) return false;
  if (a == DType::kBF16) return b == a && features.has(CpuFeature::kAmxBf16);
  return a == DType::kU8 && b == DType::kI8 && features.has(CpuFeature::kAmxInt8);
}

std::string to_string(const TileShape& tile) {
  return fmt::format("tile {}x{}x{} {} {}{}", tile.rows, tile.vectors, tile.lanes, name(tile.a), name(tile.b),
                     tile.by_matrices  ? " matrices"
                     : tile.sums_quads ? " quads"
                     : tile.by_tables  ? " tables"
                                       : "");
}

bool multiplies_bf16(CpuFeatures features) {
  return features.has(CpuFeature::kAvx512Bf16) && !features.has(CpuFeature::kAvx512Fp16);
}

bool has_tiles(DType a, DType b, CpuFeatures features) {
  if (a == DType::kBF16) return b == a && (multiplies_bf16(features) || multiplies_matrices(a, b, features));
  if (a == DType::kU8) return b == DType::kI8;
  return (a == DType::kF64 && b == a) || (a == DType::kF32 && (b == a || ops::is_narrow_weight(b)));
}

TileShape choose_tile(int64_t columns, CpuFeatures features, DType a, DType b) {
  TileShape tile{.a = a, .b = b, .by_matrices = multiplies_matrices(a, b, features)};
  tile.by_tables = a == DType::kF32 && (b == DType::kE4M3 || b == DType::kE5M2) &&
                   features.has(CpuFeature::kX86V4) && features.has(CpuFeature::kAvx512Vbmi);
  tile.sums_quads = a == DType::kU8 && !tile.by_matrices && features.has(CpuFeature::kAvx512Vnni);
  const std::span<const Candidate> candidates = candidates_for(tile, features);
  const Candidate* best = &candidates[0];
  auto cost = [&](const Candidate& candidate) {
    const int64_t width = candidate.shape.columns() / (a == DType::kF64 ? 2 : 1);
    return candidate.slowdown * static_cast<double>((columns + width - 1) / width * width);
  };
  for (const Candidate& candidate : candidates) {
    if (columns > 0 && cost(candidate) < cost(*best)) best = &candidate;
  }
  tile.rows = best->shape.rows;
  tile.vectors = best->shape.vectors;
  tile.lanes = best->shape.lanes / (a == DType::kF64 ? 2 : 1);
  return tile;
}

std::vector<int> tile_row_counts(const TileShape& tile, std::optional<int64_t> rows) {
  const int least = tile.by_matrices ? std::min(tile.rows, kMatrixRows) : 1;
  std::vector<int> counts{tile.rows};
  while (counts.back() > least) counts.push_back((counts.back() + 1) / 2);
  if (!rows) return counts;
  const int64_t rest = *rows % tile.rows;
  std::erase_if(counts, [&](int count) {
    const bool for_whole = count == tile.rows && *rows >= tile.rows;
    const int smaller = count == least ? 0 : (count + 1) / 2;
    const bool for_rest = smaller < rest && rest <= count;
    return !for_whole && !for_rest;
  });
  return counts.empty() ? std::vector{tile.rows} : counts;
}

void prefetch_line(Builder& builder, llvm::Value* address, uint32_t locality) {
  builder.CreateIntrinsic(llvm::Intrinsic::prefetch, {builder.getPtrTy()},
                          {address, builder.getInt32(0), builder.getInt32(locality), builder.getInt32(1)});
}

}  // namespace ingot::core::cpu
