// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/compile/tensor_core_text.h"

#include <fmt/core.h>

namespace ingot::core::cuda {
namespace {

constexpr std::string_view kFunctions = R"cuda(
DEVICE u32 shared_address(const void* p) { return (u32)__cvta_generic_to_shared(p); }
// 16 bytes from memory to shared memory; zeros where they are none. Both places are aligned to 16 bytes.
DEVICE void copy_chunk(void* to, const void* from, bool valid) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(shared_address(to)), "l"(from), "r"(valid ? 16 : 0) : "memory");
}
constexpr int kMostRows = 0x7fffffff;  // that coordinates of bulk copies can name
DEVICE bool is_aligned(const void* p) { return ((u64)p & 15) == 0; }
DEVICE void commit_copies() { asm volatile("cp.async.commit_group;" ::: "memory"); }
template <int pending> DEVICE void wait_for_copies() { asm volatile("cp.async.wait_group %0;" ::"n"(pending) : "memory"); }
// Four 8x8 matrices; each lane names one row of 16 bytes.
DEVICE void load_fragments(u32 (&r)[4], const void* row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "r"(shared_address(row)) : "memory");
}
DEVICE void load_fragments_transposed(u32 (&r)[4], const u16* row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "r"(shared_address(row)) : "memory");
}
// sums[16 x 8] += a[16 x 16] b[16 x 8]. A lane has rows lane / 4 and that + 8, columns lane % 4 * 2 and that + 1.
// Not volatile: products may move between the loads.
template <bool bf16> DEVICE void multiply_fragments(f32 (&sums)[4], const u32 (&a)[4], u32 b0, u32 b1) {
  if (bf16)
    asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
        : "+f"(sums[0]), "+f"(sums[1]), "+f"(sums[2]), "+f"(sums[3]) : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
  else
    asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
        : "+f"(sums[0]), "+f"(sums[1]), "+f"(sums[2]), "+f"(sums[3]) : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}
// Between the blocks of a cluster: all arrive before one goes on.
DEVICE void synchronize_cluster() {
#if __CUDA_ARCH__ >= 900
  asm volatile("barrier.cluster.arrive.aligned;\nbarrier.cluster.wait.aligned;" ::: "memory");
#endif
}
// Numbers of another block's shared memory.
struct __align__(16) Four { f32 numbers[4]; };
DEVICE Four load_four_of_block(const f32* place, int block) {
  Four four = {};
#if __CUDA_ARCH__ >= 900
  asm volatile("{\n.reg .b32 remote;\nmapa.shared::cluster.u32 remote, %4, %5;\nld.shared::cluster.v4.f32 {%0, %1, %2, %3}, [remote];\n}"
               : "=f"(four.numbers[0]), "=f"(four.numbers[1]), "=f"(four.numbers[2]), "=f"(four.numbers[3])
               : "r"(shared_address(place)), "r"(block) : "memory");
#endif
  return four;
}
DEVICE u32 pack_f16(f32 low, f32 high) {
  u32 r;
  asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(r) : "f"(high), "f"(low));
  return r;
}
DEVICE u32 pack_bf16(f32 low, f32 high) {
  u32 r;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(r) : "f"(high), "f"(low));
  return r;
}
struct __align__(16) Packed { u32 pairs[4]; };
// 16 bytes that are read once: not kept in L1. Stays before a wait that follows; the assembler moves loads by .nc behind it.
DEVICE Packed load_once(const void* from) {
  Packed packed;
  asm volatile("ld.global.L1::no_allocate.v4.u32 {%0, %1, %2, %3}, [%4];" : "=r"(packed.pairs[0]), "=r"(packed.pairs[1]), "=r"(packed.pairs[2]), "=r"(packed.pairs[3]) : "l"(from) : "memory");
  return packed;
}
template <bool bf16> DEVICE void store_eight(u16* p, const f32 (&v)[8]) {
  Packed packed;
  #pragma unroll
  for (int k = 0; k < 4; ++k) packed.pairs[k] = bf16 ? pack_bf16(v[2 * k], v[2 * k + 1]) : pack_f16(v[2 * k], v[2 * k + 1]);
  // The assembler would cut a plain store where registers are not side by side.
  asm volatile("st.global.v4.u32 [%0], {%1, %2, %3, %4};" ::"l"(p), "r"(packed.pairs[0]), "r"(packed.pairs[1]), "r"(packed.pairs[2]), "r"(packed.pairs[3]) : "memory");
}
template <bool> DEVICE void store_eight(f32* p, const f32 (&v)[8]) { store_row<false>(p, v); }
template <bool bf16> DEVICE f32 load_half(const u16* p) { return bf16 ? load_bf16(p) : load_f16(p); }
// Eight neighbours from `p` on, of which `count` exist; the last stands for those beyond. They are converted apart, so
// that all loads of a thread are on their way together.
DEVICE void load_group(Packed& packed, const u16* p, i64 count) {
  if (count >= 8 && is_aligned(p)) packed = *(const Packed*)p;
  else {
    #pragma unroll
    for (int k = 0; k < 4; ++k) packed.pairs[k] = (u32)p[least<i64>(2 * k, count - 1)] | (u32)p[least<i64>(2 * k + 1, count - 1)] << 16;
  }
}
DEVICE void load_group(Floats<8>& floats, const f32* p, i64 count) {
  if (count >= 8 && is_aligned(p)) floats = *(const Floats<8>*)p;
  else {
    #pragma unroll
    for (int k = 0; k < 8; ++k) floats.each[k] = p[least<i64>(k, count - 1)];
  }
}
DEVICE void load_group(Halves<1>& half, const u16* p, i64) { half.each[0] = *p; }
DEVICE void load_group(Floats<1>& number, const f32* p, i64) { number.each[0] = *p; }
// Whether all eight elements exist and are aligned to 16 bytes, or that is looked at; code for both may not fit the
// instruction cache.
struct Whole { static constexpr bool is_certain = true; };
struct Checked { static constexpr bool is_certain = false; };
template <class Kind, class Group, class T> DEVICE void load_group(Kind, Group& group, const T* p, i64 count) {
  if (Kind::is_certain) group = *(const Group*)p;
  else load_group(group, p, count);
}
template <bool bf16> DEVICE f32 number_of(const Packed& packed, int k) {
  const u16 half = (u16)(packed.pairs[k / 2] >> k % 2 * 16);
  return load_half<bf16>(&half);
}
)cuda";

//   for tile of the result [kRows x kColumns] that this block has, or shares with a cluster of kSplits
//   blocks:
//     for part of (its share of) the depth, kDepth at a time, kStages - 1 copies ahead:
//       each warp: its rows of a times its columns of b over its share of the part, 32 bytes deep at a time,
//       in registers
//     sums -> shared memory, shares of the depth added in order -> epilogue, adjacent threads at adjacent
//     columns; in a cluster each block has a share of the tile
// Weights are copied before the kernel waits for its predecessor; its successor may start when all operands
// have arrived. Operands that are not aligned to 16 bytes (a caller's view) are multiplied one by one.
constexpr std::string_view kCopies = R"cuda(
constexpr int kThreads = kWarpRows * kWarpColumns * kWarpDepths * 32, kOwnRows = kRows / kWarpRows, kOwnColumns = kColumns / kWarpColumns, kOwnDepth = kDepth / kWarpDepths;
constexpr int kAStride = kDepth + kChunk, kBStride = kBDepthInner ? kDepth + kChunk : kColumns + 8;  // no two rows of a fragment in one bank
constexpr int kATile = kRows * kAStride, kBTile = (kBDepthInner ? kColumns : kDepth) * kBStride, kSumStride = kColumns + 4;
constexpr int kAChunks = (kRows * kDepth / kChunk + kThreads - 1) / kThreads, kBChunks = (kColumns * kDepth / kChunk + kThreads - 1) / kThreads;  // a thread's

struct Copies {
  ASource a[kAChunks];
  const Element* b[kBChunks];
};

DEVICE Copies plan_copies(idx batch, idx first_row, idx first_column, const Operands& x) {
  Copies copies;
  #pragma unroll
  for (int i = 0; i < kAChunks; ++i) {
    const int c = threadIdx.x + i * kThreads, row = c / (kDepth / kChunk);
    copies.a[i] = a_source(x, batch, first_row + row, c % (kDepth / kChunk) * kChunk, row < kRows && first_row + row < x.rows);
  }
  #pragma unroll
  for (int i = 0; i < kBChunks; ++i) {
    const int c = threadIdx.x + i * kThreads, width = kBDepthInner ? kDepth / kChunk : kColumns / kChunk, outer = c / width, inner = c % width * kChunk;
    const int column = kBDepthInner ? outer : inner, depth = kBDepthInner ? inner : outer;
    const bool valid = column < kColumns && depth < kDepth && first_column + column < x.columns;
    copies.b[i] = valid ? b_place(x, batch, first_column + column, depth) : nullptr;
  }
  return copies;
}

DEVICE void copy_a(Element* a, idx first_depth, const Copies& copies, const Operands& x) {
  #pragma unroll
  for (int i = 0; i < kAChunks; ++i) {
    const int c = threadIdx.x + i * kThreads, depth = c % (kDepth / kChunk) * kChunk;
    if (kRows * kDepth / kChunk % kThreads != 0 && c >= kRows * kDepth / kChunk) break;
    bool valid = kWholeDepth || first_depth + depth < x.depth;
    const Element* from = a_place(x, copies.a[i], first_depth, depth, valid);
    copy_chunk(a + c / (kDepth / kChunk) * kAStride + depth, valid ? from : x.a, valid);
  }
}

DEVICE void copy_b(Element* b, idx first_depth, const Copies& copies, const Operands& x) {
  #pragma unroll
  for (int i = 0; i < kBChunks; ++i) {
    const int c = threadIdx.x + i * kThreads, width = kBDepthInner ? kDepth / kChunk : kColumns / kChunk, outer = c / width, inner = c % width * kChunk;
    if (kColumns * kDepth / kChunk % kThreads != 0 && c >= kColumns * kDepth / kChunk) break;
    const bool valid = copies.b[i] != nullptr && (kWholeDepth || first_depth + (kBDepthInner ? inner : outer) < x.depth);
    copy_chunk(b + outer * kBStride + inner, valid ? copies.b[i] + first_depth * b_step(x) : x.b, valid);
  }
}

)cuda";

// For halves: the whole part of a warp is in registers at once.
constexpr std::string_view kProductsOfHalves = R"cuda(
DEVICE void multiply_tiles(f32 (&sums)[kOwnRows / 16][kOwnColumns / 8][4], const u16* a, const u16* b) {
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32 % (kWarpRows * kWarpColumns), first = threadIdx.x / 32 / (kWarpRows * kWarpColumns) * kOwnDepth;
  const int row = warp / kWarpColumns * kOwnRows, column = warp % kWarpColumns * kOwnColumns;
  u32 fa[kOwnDepth / 16][kOwnRows / 16][4], fb[kOwnDepth / 16][kOwnColumns / 16][4];
  #pragma unroll
  for (int d = 0; d < kOwnDepth / 16; ++d) {
    const int depth = first + d * 16;
    #pragma unroll
    for (int i = 0; i < kOwnRows / 16; ++i) load_fragments(fa[d][i], a + (row + i * 16 + lane % 16) * kAStride + depth + lane / 16 * 8);
    #pragma unroll
    for (int j = 0; j < kOwnColumns / 16; ++j) {
      if (kBDepthInner) load_fragments(fb[d][j], b + (column + j * 16 + lane % 8 + lane / 16 * 8) * kBStride + depth + lane / 8 % 2 * 8);
      else load_fragments_transposed(fb[d][j], b + (depth + lane % 16) * kBStride + column + j * 16 + lane / 16 * 8);
    }
  }
  #pragma unroll
  for (int d = 0; d < kOwnDepth / 16; ++d)
    #pragma unroll
    for (int i = 0; i < kOwnRows / 16; ++i)
      #pragma unroll
      for (int j = 0; j < kOwnColumns / 8; ++j) multiply_fragments<kBf16>(sums[i][j], fa[d][i], fb[d][j / 2][j % 2 * 2], fb[d][j / 2][j % 2 * 2 + 1]);
}
template <class... T> DEVICE void mend_sums(const T&...) {}
)cuda";

constexpr std::string_view kTileBody = R"cuda(
DEVICE void keep_sums(f32* to, const f32 (&sums)[kOwnRows / 16][kOwnColumns / 8][4]) {
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32 % (kWarpRows * kWarpColumns), share = threadIdx.x / 32 / (kWarpRows * kWarpColumns);
  const int row = warp / kWarpColumns * kOwnRows + lane / 4, column = warp % kWarpColumns * kOwnColumns + lane % 4 * 2;
  #pragma unroll
  for (int s = 0; s < kWarpDepths; ++s) {
    if (s == share) {
      #pragma unroll
      for (int i = 0; i < kOwnRows / 16; ++i)
        #pragma unroll
        for (int j = 0; j < kOwnColumns / 8; ++j)
          #pragma unroll
          for (int k = 0; k < 4; ++k) {
            f32* const place = to + (row + i * 16 + k / 2 * 8) * kSumStride + column + j * 8 + k % 2;
            *place = s == 0 ? sums[i][j][k] : *place + sums[i][j][k];
          }
    }
    __syncthreads();
  }
}

template <class Begin, class End> DEVICE void multiply_tile(char* shared, int share, idx batch, idx first_row, idx first_column, const Operands& x, const Begin& begin_epilogue, const End& end_products) {
  Element* const a = (Element*)shared;
  Element* const b = a + kStages * kATile;
  f32 sums[kOwnRows / 16][kOwnColumns / 8][4] = {};
  const Copies copies = plan_copies(batch, first_row, first_column, x);
  const int all = (int)((x.depth + kDepth - 1) / kDepth), first = all * share / kSplits, parts = all * (share + 1) / kSplits - first;
  const auto depth_of = [&](int part) { return (idx)(first + part) * kDepth; };
  if (kBIsWeight) {
    for (int s = 0; s < kStages - 1; ++s)
      if (s < parts) copy_b(b + s * kBTile, depth_of(s), copies, x);
  }
  wait_for_previous();
  for (int s = 0; s < kStages - 1; ++s) {
    if (!kBIsWeight && s < parts) copy_b(b + s * kBTile, depth_of(s), copies, x);
    if (s < parts) copy_a(a + s * kATile, depth_of(s), copies, x);
    commit_copies();
  }
  begin_epilogue();
  for (int part = 0; part < parts; ++part) {
    wait_for_copies<kStages - 2>();
    __syncthreads();
    if (kNextWithOperands && part + 1 == parts) let_next_start();
    const int next = part + kStages - 1;
    if (next < parts) {
      copy_b(b + next % kStages * kBTile, depth_of(next), copies, x);
      copy_a(a + next % kStages * kATile, depth_of(next), copies, x);
    }
    commit_copies();
    multiply_tiles(sums, a + part % kStages * kATile, b + part % kStages * kBTile);
  }
  end_products();
  wait_for_copies<0>();
  __syncthreads();
  keep_sums((f32*)shared, sums);
  mend_sums((f32*)shared, sums, depth_of(0), least(x.depth, depth_of(parts)), batch, first_row, first_column, x);
  if (kSplits > 1) synchronize_cluster();
}
DEVICE void end_tile(bool last) { if (kSplits > 1) synchronize_cluster(); else if (!last) __syncthreads(); }
)cuda";

constexpr std::string_view kOneByOne = R"cuda(
DEVICE f32 sum_one_by_one(idx depth, idx end, idx batch, idx row, idx column, const Operands& x) {
  f32 sum = 0;
  for (; depth < end; ++depth) {
    bool valid = true;
    const Element* a = a_place(x, a_source(x, batch, row, depth % kDepth, true), depth / kDepth * kDepth, depth % kDepth, valid);
    sum = fmaf(valid ? load_element(a) : 0, load_element(b_place(x, batch, column, depth)), sum);
  }
  return sum;
}
)cuda";

// For tiles whose sums are in shared memory, [kRows][kSumStride], in a cluster each block's share of them.
constexpr std::string_view kSums = R"cuda(
DEVICE void multiply_one_by_one(char* shared, int share, idx batch, idx first_row, idx first_column, const Operands& x) {
  for (int i = threadIdx.x; i < kRows * kColumns; i += kThreads) {
    const idx row = first_row + i / kColumns, column = first_column + i % kColumns;
    const bool is_own = share == 0 && row < x.rows && column < x.columns;
    ((f32*)shared)[i / kColumns * kSumStride + i % kColumns] = is_own ? sum_one_by_one(0, x.depth, batch, row, column, x) : 0;
  }
  if (kSplits > 1) synchronize_cluster(); else __syncthreads();
}

DEVICE void keep_sum(char* shared, int row, int column, f32 sum) { ((f32*)shared)[row * kSumStride + column] = sum; }

// Neighbours of the tile: the shares of the cluster's blocks, in order.
DEVICE void add_shares_of(f32 (&sums)[kWide], char* shared, int row, int column) {
  const f32* const place = (const f32*)shared + row * kSumStride + column;
  #pragma unroll
  for (int s = 0; s < kSplits; ++s)
    #pragma unroll
    for (int k = 0; k < kWide; k += 4) {
      const Four four = kSplits == 1 ? *(const Four*)(place + k) : load_four_of_block(place + k, s);
      #pragma unroll
      for (int e = 0; e < 4; ++e) sums[k + e] = s == 0 ? four.numbers[e] : sums[k + e] + four.numbers[e];
    }
}
)cuda";

}  // namespace

std::string_view tensor_core_functions() { return kFunctions; }
std::string contraction_body(std::string_view products) {
  return fmt::format("{}{}{}", kCopies, products, kTileBody);
}
std::string_view products_of_halves() { return kProductsOfHalves; }
std::string_view sum_one_by_one() { return kOneByOne; }
std::string_view sums_of_tiles() { return kSums; }

}  // namespace ingot::core::cuda
