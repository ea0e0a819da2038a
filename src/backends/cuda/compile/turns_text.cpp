// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/compile/turns_text.h"

#include "backends/cuda/compile/warp_group_text.h"

namespace ingot::core::cuda {
namespace {

// Each warp has 16 rows of 64 columns of sums in shared memory.
constexpr std::string_view kTurnConstants = R"cuda(
constexpr int kBlocks = kRows / 64, kGroups = 2, kThreads = 384, kReaders = 4, kOthers = 2, kOtherArrivals = 4;
constexpr int kChunkColumns = 64, kSumStride = kChunkColumns + 8, kAtOnce = 16 * kChunkColumns / 8 / 32;  // eights of a lane
constexpr int kATile = kRows * kDepth, kBTile = kColumns * kDepth, kPartBytes = (kATile + kBTile) * 2;
constexpr int kAllPartBytes = kStages * kPartBytes, kTileBytes = kAllPartBytes + kGroups * 4 * 16 * kSumStride * 4;
)cuda";

//   one thread copies the parts of one tile after another
//   group 0 multiplies the parts of the block's first tile | group 1 finishes the tile before
//   group 0 finishes it, from registers                    | group 1 multiplies the parts of the next tile
// The groups multiply one after the other, in the order in which parts are copied: a barrier's phase says no
// more than whether the last part in its place has come.
constexpr std::string_view kTurns = R"cuda(
template <int registers> DEVICE void take_registers() { asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(registers)); }
template <int registers> DEVICE void give_registers() { asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(registers)); }
typedef f32 TileSums[kBlocks][kColumns / 8][4];
DEVICE void hold_tile(TileSums& sums) {
  #pragma unroll
  for (int m = 0; m < kBlocks; ++m) hold_sums(sums[m]);
}

// A block's tiles are numbered by `turn`; `last`: the block has no other.
DEVICE void multiply_in_turn(TileSums& sums, Parts& p, int parts, int turn, bool last) {
  if (turn > 0) wait_for_phase(p.others + turn % 2 * 8, (turn - 1) / 2 & 1);
  for (int part = 0; part < parts; ++part) {
    wait_for_phase(p.barrier(p.full, part), p.phase(part));
    if (kNextWithOperands && last && part + 1 == parts) let_next_start();
    hold_tile(sums);
    begin_products();
    const u64 a = matrix_of(p.a(part)), b = matrix_of(p.b(part));
    #pragma unroll
    for (int k = 0; k < kDepth / 16; ++k)
      #pragma unroll
      for (int m = 0; m < kBlocks; ++m) multiply_group(sums[m], a + m * (64 * kDepth * 2 >> 4) + k * 2, b + k * 2);
    commit_products();
    hold_tile(sums);
    if (part > 0) {
      wait_for_products<1>();
      if (threadIdx.x % 32 == 0) arrive(p.barrier(p.empty, part - 1));
    }
  }
  if (threadIdx.x % 32 == 0) arrive(p.others + (turn + 1) % 2 * 8);
  wait_for_products<0>();
  hold_tile(sums);
  if (threadIdx.x % 32 == 0) arrive(p.barrier(p.empty, parts - 1));
}

// Sums go through the warp's shared memory, so that a lane finishes eight neighbours of a row, four times. A loop: as
// straight code this would not fit the instruction cache.
template <class Load, class Finish> DEVICE void finish_in_turn(char* shared, TileSums& sums, idx first_row, idx first_column, const Operands& x, const Load& load_eight, const Finish& finish_eight) {
  constexpr int kEights = kChunkColumns / 8, kRowsAtOnce = 32 / kEights;
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  f32* const own = (f32*)(shared + kAllPartBytes) + warp * 16 * kSumStride;
  constexpr int kChunks = kColumns / kChunkColumns;
  #pragma unroll 1
  for (int chunk = 0; chunk < kBlocks * kChunks; ++chunk) {
    const idx row = first_row + chunk / kChunks * 64 + warp % 4 * 16 + lane / kEights, column = first_column + chunk % kChunks * kChunkColumns + lane % kEights * 8;
    const bool has_columns = column < x.columns;
    #pragma unroll
    for (int n = 0; n < kAtOnce; ++n)
      if (has_columns) load_eight(n, least(row + n * kRowsAtOnce, x.rows - 1), column);
    __syncwarp();
    #pragma unroll
    for (int s = 0; s < kBlocks * kChunks; ++s) {  // registers have no index
      if (s != chunk) continue;
      #pragma unroll
      for (int j = 0; j < kEights; ++j)
        #pragma unroll
        for (int h = 0; h < 2; ++h) {
          const f32 (&pair)[4] = sums[s / kChunks][s % kChunks * kEights + j];
          *(u64*)(own + (lane / 4 + h * 8) * kSumStride + j * 8 + lane % 4 * 2) = (u64)__float_as_uint(pair[2 * h]) | (u64)__float_as_uint(pair[2 * h + 1]) << 32;
        }
    }
    __syncwarp();
    #pragma unroll
    for (int n = 0; n < kAtOnce; ++n) {
      f32 eight[8];
      #pragma unroll
      for (int k = 0; k < 8; k += 4) {
        const Four four = *(const Four*)(own + (lane / kEights + n * kRowsAtOnce) * kSumStride + lane % kEights * 8 + k);
        #pragma unroll
        for (int e = 0; e < 4; ++e) eight[k + e] = four.numbers[e];
      }
      if (has_columns && row + n * kRowsAtOnce < x.rows) finish_eight(n, row + n * kRowsAtOnce, column, eight);
    }
  }
}

// Of operands that are not aligned to 16 bytes.
template <class Load, class Finish> DEVICE void finish_one_by_one(idx batch, idx first_row, idx first_column, const Operands& x, const Load& load_eight, const Finish& finish_eight) {
  for (int i = threadIdx.x; i < kRows * kColumns / 8; i += kThreads) {
    const idx row = first_row + i / (kColumns / 8), column = first_column + i % (kColumns / 8) * 8;
    if (row >= x.rows || column >= x.columns) continue;
    f32 eight[8];
    for (int k = 0; k < 8; ++k) eight[k] = sum_one_by_one(0, x.depth, batch, row, column + k, x);
    load_eight(0, row, column);
    finish_eight(0, row, column, eight);
  }
}
)cuda";

}  // namespace

std::string turns_body() {
  return std::string(kTurnConstants) + std::string(group_parts()) + std::string(kTurns);
}

}  // namespace ingot::core::cuda
