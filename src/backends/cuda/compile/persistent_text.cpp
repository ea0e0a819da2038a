// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/compile/persistent_text.h"

#include "backends/cuda/compile/warp_group_text.h"

namespace ingot::core::cuda {
namespace {

// A lane finishes kAtOnce rows of eight neighbouring columns at a time. Loads of these are followed by those
// of kSlots chunks, as many as registers can hold. Code of all chunks would take longer to fetch than to run:
// a loop has that of kUnrolled.
constexpr std::string_view kConstants = R"cuda(
constexpr int kBlocks = kInTurns ? kRows / 64 : 1, kGroups = kInTurns ? 2 : kRows / 64, kThreads = (kGroups + 1) * 128;
constexpr int kReaders = kInTurns ? 4 : kGroups * 4, kOthers = kInTurns ? 2 : 0, kOtherArrivals = 4;
constexpr int kFewRegisters = kGroups == 2 ? 40 : 24, kManyRegisters = kGroups == 2 ? 232 : 160;
static_assert((kFewRegisters + kGroups * kManyRegisters) * 128 <= 65536 / kThreads / 8 * 8 * kThreads, "who takes more registers than the block starts with waits for ever");
constexpr int kAtOnce = 2, kChunks = kBlocks * (kColumns / 32), kSlots = kChunks % 2 == 0 ? 2 : 1, kLoads = (1 + kSlots) * kAtOnce;
constexpr int kUnrolled = kChunks % 4 == 0 ? 4 : kChunks <= 3 ? kChunks : kSlots;
static_assert(kChunks % kUnrolled == 0 && kUnrolled % kSlots == 0 && kUnrolled % kBlocks == 0, "chunks have equal turns of the loop");
constexpr int kATile = kRows * kDepth, kBTile = kColumns * kDepth, kPartBytes = (kATile + kBTile) * 2, kAllPartBytes = kStages * kPartBytes, kTileBytes = kAllPartBytes;
)cuda";

// In turns:
//   one thread copies the parts of one tile after another
//   group 0 multiplies the parts of the block's first tile | group 1 finishes the tile before
//   group 0 finishes it, from registers                    | group 1 multiplies the parts of the next tile
// The groups multiply one after the other, in the order in which parts are copied: a barrier's phase says no
// more than whether the last part in its place has come.
// Together:
//   one thread copies the parts of one tile after another
//   all groups multiply the parts of a tile, 64 rows each, and finish it
constexpr std::string_view kPersistent = R"cuda(
template <int registers> DEVICE void take_registers() { asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(registers)); }
template <int registers> DEVICE void give_registers() { asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(registers)); }
typedef f32 TileSums[kBlocks][kColumns / 8][4];
DEVICE void hold_tile(TileSums& sums) {
  #pragma unroll
  for (int m = 0; m < kBlocks; ++m) hold_sums(sums[m]);
}

// The first row of a tile that a group multiplies.
DEVICE int first_own_row() { return kInTurns ? 0 : uniform(threadIdx.x / 128) * 64; }

// A block's tiles are numbered by `turn`; `last`: the block has no other.
DEVICE void multiply_persistently(TileSums& sums, const Parts& p, int parts, int turn, bool last) {
  if (kInTurns && turn > 0) wait_for_phase(p.others + turn % 2 * 8, (turn - 1) / 2 & 1);
  const int own_row = first_own_row();
  Place place = p.next();
  int before = 0;
  #pragma unroll 1
  for (int part = 0; part < parts; ++part, place.advance()) {
    p.wait_for(place);
    if (kNextWithOperands && last && part + 1 == parts) let_next_start();
    hold_tile(sums);
    begin_products();
    const u64 a = matrix_of(p.a(place.stage) + own_row * kDepth), b = matrix_of(p.b(place.stage));
    #pragma unroll
    for (int k = 0; k < kDepth / 16; ++k)
      #pragma unroll
      for (int m = 0; m < kBlocks; ++m) multiply_group(sums[m], a + m * (64 * kDepth * 2 >> 4) + k * 2, b + k * 2);
    commit_products();
    hold_tile(sums);
    if (part > 0) {
      wait_for_products<1>();
      p.release(before);
    }
    before = place.stage;
  }
  if (kInTurns && threadIdx.x % 32 == 0) arrive(p.others + (turn + 1) % 2 * 8);
  wait_for_products<0>();
  hold_tile(sums);
  p.release(before);
}

// Eight sums of a lane are of neighbouring columns, by the order in which b is copied: none has to go through shared
// memory, which products keep busy.
struct Chunk { idx row, column; };  // of a lane's first eight; the next is 8 rows below
DEVICE Chunk chunk_at(int chunk, idx first_row, idx first_column) {
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  return {first_row + first_own_row() + chunk % kBlocks * 64 + warp % 4 * 16 + lane / 4, first_column + chunk / kBlocks * 32 + lane % 4 * 8};
}
// What chunks read besides sums is on its way while products, or earlier chunks, are computed: it takes a microsecond.
template <class Load> DEVICE void load_chunk(int chunk, int slot, idx first_row, idx first_column, const Operands& x, const Load& load_eight) {
  const Chunk at = chunk_at(chunk, first_row, first_column);
  #pragma unroll
  for (int n = 0; n < kAtOnce; ++n)
    if (chunk < kChunks && at.column < x.columns) load_eight((1 + slot) * kAtOnce + n, least(at.row + n * 8, x.rows - 1), at.column, Whole());
}
template <class Load> DEVICE void load_first_chunks(idx first_row, idx first_column, const Operands& x, const Load& load_eight) {
  #pragma unroll
  for (int s = 0; s < kSlots; ++s) load_chunk(s, s, first_row, first_column, x, load_eight);
}

// Registers have no index: after each turn of the loop the next sums move to where the first were. What is beyond the
// edge is computed too: without branches, the groups of a chunk share what belongs to its columns.
template <class Load, class Take, class Finish> DEVICE void finish_from_registers(TileSums& sums, idx first_row, idx first_column, const Operands& x, const Load& load_eight, const Take& take_loads, const Finish& finish_eight) {
  constexpr int kMoved = kUnrolled / kBlocks * 4;  // of a block's groups of eight columns
  #pragma unroll 1
  for (int first = 0; first < kChunks; first += kUnrolled) {
    #pragma unroll
    for (int s = 0; s < kUnrolled; ++s) {
      const Chunk at = chunk_at(first + s, first_row, first_column);
      take_loads(s % kSlots);
      load_chunk(first + s + kSlots, s % kSlots, first_row, first_column, x, load_eight);
      #pragma unroll
      for (int n = 0; n < kAtOnce; ++n) {
        f32 eight[8];
        #pragma unroll
        for (int k = 0; k < 8; ++k) eight[k] = sums[s % kBlocks][s / kBlocks * 4 + k / 2][2 * n + k % 2];
        const idx row = at.row + n * 8;
        finish_eight(n, least(row, x.rows - 1), least(at.column, x.columns - 8), eight, Whole(), row < x.rows && at.column < x.columns);
      }
    }
    #pragma unroll
    for (int m = 0; m < kBlocks; ++m)
      #pragma unroll
      for (int j = 0; j + kMoved < kColumns / 8; ++j)
        #pragma unroll
        for (int k = 0; k < 4; ++k) sums[m][j][k] = sums[m][j + kMoved][k];
  }
}

// Of buffers that are not aligned to 16 bytes.
template <class Load, class Take, class Finish> DEVICE void finish_one_by_one(idx batch, idx first_row, idx first_column, const Operands& x, const Load& load_eight, const Take& take_loads, const Finish& finish_eight) {
  for (int i = threadIdx.x; i < kRows * kColumns / 8; i += kThreads) {
    const idx row = first_row + i / (kColumns / 8), column = first_column + i % (kColumns / 8) * 8;
    if (row >= x.rows || column >= x.columns) continue;
    f32 eight[8];
    for (int k = 0; k < 8; ++k) eight[k] = sum_one_by_one(0, x.depth, batch, row, column + k, x);
    load_eight(kAtOnce, row, column, Checked());
    take_loads(0);
    finish_eight(0, row, column, eight, Checked(), true);
  }
}
)cuda";

}  // namespace

std::string persistent_body() {
  return std::string(kConstants) + std::string(group_parts()) + std::string(kPersistent);
}

}  // namespace ingot::core::cuda
