// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/compile/tensor_core_text.h"

namespace ingot::core::cuda {
namespace {

constexpr std::string_view kFunctions = R"cuda(
DEVICE u32 shared_address(const void* p) { return (u32)__cvta_generic_to_shared(p); }
// Eight elements from memory to shared memory; zeros where they are none. Both places are aligned to 16 bytes.
DEVICE void copy_chunk(u16* to, const u16* from, bool valid) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(shared_address(to)), "l"(from), "r"(valid ? 16 : 0) : "memory");
}
DEVICE bool is_aligned(const void* p) { return ((u64)p & 15) == 0; }
DEVICE void commit_copies() { asm volatile("cp.async.commit_group;" ::: "memory"); }
template <int pending> DEVICE void wait_for_copies() { asm volatile("cp.async.wait_group %0;" ::"n"(pending) : "memory"); }
// Four 8x8 matrices; each lane names one row of 16 bytes.
DEVICE void load_fragments(u32 (&r)[4], const u16* row) {
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
// Between the blocks of a cluster: all arrive before one goes on, and a number of another block's shared memory.
DEVICE void synchronize_cluster() {
#if __CUDA_ARCH__ >= 900
  asm volatile("barrier.cluster.arrive.aligned;\nbarrier.cluster.wait.aligned;" ::: "memory");
#endif
}
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
DEVICE f32 load_of_block(const f32* place, int block) {
  f32 value = 0;
#if __CUDA_ARCH__ >= 900
  asm volatile("{\n.reg .b32 remote;\nmapa.shared::cluster.u32 remote, %1, %2;\nld.shared::cluster.f32 %0, [remote];\n}"
               : "=f"(value) : "r"(shared_address(place)), "r"(block) : "memory");
#endif
  return value;
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
template <bool bf16> DEVICE void store_eight(u16* p, const f32 (&v)[8]) {
  Packed packed;
  #pragma unroll
  for (int k = 0; k < 4; ++k) packed.pairs[k] = bf16 ? pack_bf16(v[2 * k], v[2 * k + 1]) : pack_f16(v[2 * k], v[2 * k + 1]);
  *(Packed*)p = packed;
}
template <bool bf16> DEVICE f32 load_half(const u16* p) { return bf16 ? load_bf16(p) : load_f16(p); }
)cuda";

//   for tile of the result [kRows x kColumns] that this block has, or shares with a cluster of kSplits
//   blocks:
//     for part of (its share of) the depth, kDepth at a time, kStages - 1 copies ahead:
//       each warp: its rows of a times its columns of b over its share of the part, 16 deep at a time, in
//       registers
//     sums -> shared memory, shares of the depth added in order -> epilogue, neighbours at neighbouring
//     columns; in a cluster each block has a share of the tile
// Weights are copied before the kernel waits for the one before it; the next may start when all operands are
// there.
// Operands that are not aligned to 16 bytes (a caller's view) are multiplied one by one.
constexpr std::string_view kContraction = R"cuda(
constexpr int kThreads = kWarpRows * kWarpColumns * kWarpDepths * 32, kOwnRows = kRows / kWarpRows, kOwnColumns = kColumns / kWarpColumns, kOwnDepth = kDepth / kWarpDepths;
constexpr int kAStride = kDepth + 8, kBStride = kBDepthInner ? kDepth + 8 : kColumns + 8;  // no two rows of a fragment in one bank
constexpr int kATile = kRows * kAStride, kBTile = (kBDepthInner ? kColumns : kDepth) * kBStride, kSumStride = kColumns + 4;
constexpr int kAChunks = (kRows * kDepth / 8 + kThreads - 1) / kThreads, kBChunks = (kColumns * kDepth / 8 + kThreads - 1) / kThreads;  // a thread's

struct Copies {
  ASource a[kAChunks];
  const u16* b[kBChunks];
};

DEVICE Copies plan_copies(idx batch, idx first_row, idx first_column, const Operands& x) {
  Copies copies;
  #pragma unroll
  for (int i = 0; i < kAChunks; ++i) {
    const int c = threadIdx.x + i * kThreads, row = c / (kDepth / 8);
    copies.a[i] = a_source(x, batch, first_row + row, c % (kDepth / 8) * 8, row < kRows && first_row + row < x.rows);
  }
  #pragma unroll
  for (int i = 0; i < kBChunks; ++i) {
    const int c = threadIdx.x + i * kThreads, width = kBDepthInner ? kDepth / 8 : kColumns / 8, outer = c / width, inner = c % width * 8;
    const int column = kBDepthInner ? outer : inner, depth = kBDepthInner ? inner : outer;
    const bool valid = column < kColumns && depth < kDepth && first_column + column < x.columns;
    copies.b[i] = valid ? b_place(x, batch, first_column + column, depth) : nullptr;
  }
  return copies;
}

DEVICE void copy_a(u16* a, idx first_depth, const Copies& copies, const Operands& x) {
  #pragma unroll
  for (int i = 0; i < kAChunks; ++i) {
    const int c = threadIdx.x + i * kThreads, depth = c % (kDepth / 8) * 8;
    if (kRows * kDepth / 8 % kThreads != 0 && c >= kRows * kDepth / 8) break;
    bool valid = kWholeDepth || first_depth + depth < x.depth;
    const u16* from = a_place(x, copies.a[i], first_depth, depth, valid);
    copy_chunk(a + c / (kDepth / 8) * kAStride + depth, valid ? from : x.a, valid);
  }
}

DEVICE void copy_b(u16* b, idx first_depth, const Copies& copies, const Operands& x) {
  #pragma unroll
  for (int i = 0; i < kBChunks; ++i) {
    const int c = threadIdx.x + i * kThreads, width = kBDepthInner ? kDepth / 8 : kColumns / 8, outer = c / width, inner = c % width * 8;
    if (kColumns * kDepth / 8 % kThreads != 0 && c >= kColumns * kDepth / 8) break;
    const bool valid = copies.b[i] != nullptr && (kWholeDepth || first_depth + (kBDepthInner ? inner : outer) < x.depth);
    copy_chunk(b + outer * kBStride + inner, valid ? copies.b[i] + first_depth * b_step(x) : x.b, valid);
  }
}

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

DEVICE void multiply_one_by_one(f32* to, int share, idx batch, idx first_row, idx first_column, const Operands& x) {
  for (int i = threadIdx.x; i < kRows * kColumns; i += kThreads) {
    const idx row = first_row + i / kColumns, column = first_column + i % kColumns;
    f32 sum = 0;
    if (share == 0 && row < x.rows && column < x.columns)
      for (idx depth = 0; depth < x.depth; ++depth) {
        bool valid = true;
        const ASource source = a_source(x, batch, row, depth % kDepth, true);
        const u16* a = a_place(x, source, depth / kDepth * kDepth, depth % kDepth, valid);
        if (valid) sum = fmaf(load_half<kBf16>(a), load_half<kBf16>(b_place(x, batch, column, depth)), sum);
      }
    to[i / kColumns * kSumStride + i % kColumns] = sum;
  }
  __syncthreads();
}

DEVICE void multiply_tile(char* shared, int share, idx batch, idx first_row, idx first_column, const Operands& x) {
  u16* const a = (u16*)shared;
  u16* const b = a + kStages * kATile;
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
  for (int part = 0; part < parts; ++part) {
    wait_for_copies<kStages - 2>();
    __syncthreads();
    if (part + 1 == parts) let_next_start();
    const int next = part + kStages - 1;
    if (next < parts) {
      copy_b(b + next % kStages * kBTile, depth_of(next), copies, x);
      copy_a(a + next % kStages * kATile, depth_of(next), copies, x);
    }
    commit_copies();
    multiply_tiles(sums, a + part % kStages * kATile, b + part % kStages * kBTile);
  }
  wait_for_copies<0>();
  __syncthreads();
  keep_sums((f32*)shared, sums);
}

// Neighbours of the tile: the shares of the cluster's blocks, in order.
DEVICE void add_shares_of(f32 (&sums)[kWide], const f32* place) {
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

//   for part of the keys, kKeys at a time, the next one being copied meanwhile:
//     each warp: scores of its 16 rows and its share of the part; the largest so far; weights; weights times
//     values
//   shares of the keys, of warps and of blocks of a cluster, are merged in order (online softmax: Milakov and
//   Gimelshein 2018; tiles: Dao et al. 2022)
constexpr std::string_view kAttention = R"cuda(
constexpr int kRows = kWarpRows * 16, kThreads = 128, kStride = kWidth + 8, kValueStride = kValueWidth + 8, kOwnKeys = kKeys / kWarpKeys, kSumStride = kValueWidth + 4;

DEVICE void copy_rows(u16* to, int stride, int width, int rows, idx first, idx end, const u16* (*place)(const Operands&, idx, idx), idx batch, const Operands& x) {
  for (int c = threadIdx.x; c < rows * (width / 8); c += kThreads) {
    const int row = c / (width / 8), column = c % (width / 8) * 8;
    const bool valid = first + row < end;
    const u16* const from = valid ? place(x, batch, first + row) + column : x.q;
    u16* const into = to + row * stride + column;
    if (x.aligned) copy_chunk(into, from, valid);
    else for (int i = 0; i < 8; ++i) into[i] = valid ? from[i] : (u16)0;
  }
}
DEVICE f32 power_of_two(f32 v) { f32 r; asm("ex2.approx.f32 %0, %1;" : "=f"(r) : "f"(v)); return r; }
DEVICE u32 pack(f32 low, f32 high) { return kBf16 ? pack_bf16(low, high) : pack_f16(low, high); }
DEVICE f32 largest_of_row(f32 v) { v = fmaxf(v, __shfl_xor_sync(~0u, v, 1)); return fmaxf(v, __shfl_xor_sync(~0u, v, 2)); }
DEVICE f32 sum_of_row(f32 v) { v += __shfl_xor_sync(~0u, v, 1); return v + __shfl_xor_sync(~0u, v, 2); }

struct Rows {  // a lane's part of 16 rows: rows lane / 4 and that + 8
  f32 values[kValueWidth / 8][4], most[2], total[2];
};

DEVICE void attend_part(Rows& rows, const u16* q, const u16* k, const u16* v, idx first_row, idx first_key, const Mask* mask, idx batch, const Operands& x) {
  const int lane = threadIdx.x % 32, own = threadIdx.x / 32 % kWarpKeys * kOwnKeys, warp_row = threadIdx.x / 32 / kWarpKeys * 16;
  f32 scores[kOwnKeys / 8][4] = {};
  #pragma unroll
  for (int d = 0; d < kWidth / 16; ++d) {
    u32 fq[4];
    load_fragments(fq, q + (warp_row + lane % 16) * kStride + d * 16 + lane / 16 * 8);
    #pragma unroll
    for (int j = 0; j < kOwnKeys / 16; ++j) {
      u32 fk[4];
      load_fragments(fk, k + (own + j * 16 + lane % 8 + lane / 16 * 8) * kStride + d * 16 + lane / 8 % 2 * 8);
      multiply_fragments<kBf16>(scores[2 * j], fq, fk[0], fk[1]);
      multiply_fragments<kBf16>(scores[2 * j + 1], fq, fk[2], fk[3]);
    }
  }
  f32 base[2], factor[2], sum[2] = {0, 0};
  #pragma unroll
  for (int h = 0; h < 2; ++h) {
    const idx row = first_row + warp_row + lane / 4 + h * 8;
    f32 most = rows.most[h];
    #pragma unroll
    for (int j = 0; j < kOwnKeys / 8; ++j)
      #pragma unroll
      for (int e = 0; e < 2; ++e) {
        f32& score = scores[j][h * 2 + e];
        const idx key = first_key + own + j * 8 + lane % 4 * 2 + e;
        score = key < x.keys && row < x.queries ? masked(x, mask, batch, row, key, score * kScale) : -__int_as_float(0x7f800000);
        most = fmaxf(most, score);
      }
    most = largest_of_row(most);
    constexpr f32 kLog2e = 1.44269504f;
    const f32 finite = most == -__int_as_float(0x7f800000) ? 0 : most;
    factor[h] = power_of_two((rows.most[h] - finite) * kLog2e);
    rows.most[h] = most;
    #pragma unroll
    for (int j = 0; j < kOwnKeys / 8; ++j)
      #pragma unroll
      for (int e = 0; e < 2; ++e) {
        f32& score = scores[j][h * 2 + e];
        score = power_of_two((score - finite) * kLog2e);
        sum[h] += score;
      }
    rows.total[h] = rows.total[h] * factor[h] + sum_of_row(sum[h]);
  }
  #pragma unroll
  for (int n = 0; n < kValueWidth / 8; ++n)
    #pragma unroll
    for (int e = 0; e < 4; ++e) rows.values[n][e] *= factor[e / 2];
  #pragma unroll
  for (int j = 0; j < kOwnKeys / 16; ++j) {
    const u32 weights[4] = {pack(scores[2 * j][0], scores[2 * j][1]), pack(scores[2 * j][2], scores[2 * j][3]),
                            pack(scores[2 * j + 1][0], scores[2 * j + 1][1]), pack(scores[2 * j + 1][2], scores[2 * j + 1][3])};
    #pragma unroll
    for (int n = 0; n < kValueWidth / 16; ++n) {
      u32 fv[4];
      load_fragments_transposed(fv, v + (own + j * 16 + lane % 16) * kValueStride + n * 16 + lane / 16 * 8);
      multiply_fragments<kBf16>(rows.values[2 * n], weights, fv[0], fv[1]);
      multiply_fragments<kBf16>(rows.values[2 * n + 1], weights, fv[2], fv[3]);
    }
  }
}

DEVICE void store_half(u16* p, f32 v) { if (kBf16) store_bf16(p, v); else store_f16(p, v); }

// How much each of `count` shares of the keys counts for a row; the row's total and largest score are last.
template <class Load> DEVICE void weigh_shares(f32* factors, int row, int count, const Load& most_and_total) {
  f32 most = -__int_as_float(0x7f800000), total = 0;
  for (int s = 0; s < count; ++s) most = fmaxf(most, most_and_total(s, 1));
  const f32 finite = most == -__int_as_float(0x7f800000) ? 0 : most;
  for (int s = 0; s < count; ++s) {
    const f32 factor = power_of_two((most_and_total(s, 1) - finite) * 1.44269504f);
    factors[s * kRows + row] = factor;
    total += most_and_total(s, 2) * factor;
  }
  factors[count * kRows + row] = total;
  factors[(count + 1) * kRows + row] = most;
}

// Adds up the shares of the warps, then of the blocks of a cluster.
DEVICE void merge(char* shared, int block, const Rows& rows, u16* result, idx batch, idx first_row, const Operands& x) {
  constexpr int kNumbers = kRows * kSumStride;
  f32* const values = (f32*)shared;  // [kWarpKeys][kRows][kSumStride], and the sum of all of them
  f32* const all = values + kWarpKeys * kNumbers;
  f32* const most = all + kNumbers;  // [kWarpKeys][kRows]
  f32* const total = most + kWarpKeys * kRows;
  f32* const factors = total + kWarpKeys * kRows;         // [kWarpKeys + 2][kRows]
  f32* const of_blocks = factors + (kWarpKeys + 2) * kRows;  // [kSplits + 2][kRows]
  const int lane = threadIdx.x % 32, share = threadIdx.x / 32 % kWarpKeys, row = threadIdx.x / 32 / kWarpKeys * 16 + lane / 4;
  #pragma unroll
  for (int n = 0; n < kValueWidth / 8; ++n)
    #pragma unroll
    for (int e = 0; e < 4; ++e) values[(share * kRows + row + e / 2 * 8) * kSumStride + n * 8 + lane % 4 * 2 + e % 2] = rows.values[n][e];
  if (lane % 4 == 0)
    for (int h = 0; h < 2; ++h) {
      most[share * kRows + row + h * 8] = rows.most[h];
      total[share * kRows + row + h * 8] = rows.total[h];
    }
  __syncthreads();
  const int own = threadIdx.x;
  if (own < kRows) weigh_shares(factors, own, kWarpKeys, [&](int s, int what) { return what == 2 ? total[s * kRows + own] : most[s * kRows + own]; });
  __syncthreads();
  const auto sum_of_warps = [&](int r, int column) {
    f32 sum = 0;
    #pragma unroll
    for (int s = 0; s < kWarpKeys; ++s) sum += values[s * kNumbers + r * kSumStride + column] * factors[s * kRows + r];
    return sum;
  };
  if (kSplits > 1) {
    for (int c = threadIdx.x; c < kRows * kValueWidth; c += kThreads)
      all[c / kValueWidth * kSumStride + c % kValueWidth] = sum_of_warps(c / kValueWidth, c % kValueWidth);
    synchronize_cluster();
    if (own < kRows)
      weigh_shares(of_blocks, own, kSplits, [&](int s, int what) { return load_of_block(factors + (what == 2 ? kWarpKeys : kWarpKeys + 1) * kRows + own, s); });
    __syncthreads();
  }
  const f32* const totals = kSplits > 1 ? of_blocks + kSplits * kRows : factors + kWarpKeys * kRows;
  for (int c = block * kThreads + threadIdx.x; c < kRows * kValueWidth; c += kSplits * kThreads) {
    const int r = c / kValueWidth, column = c % kValueWidth;
    if (first_row + r >= x.queries) continue;
    f32 sum = kSplits > 1 ? 0 : sum_of_warps(r, column);
    #pragma unroll
    for (int s = 0; s < (kSplits > 1 ? kSplits : 0); ++s) sum += load_of_block(all + r * kSumStride + column, s) * of_blocks[s * kRows + r];
    const f32 empty = kEmptyIsNan ? __int_as_float(0x7fc00000) : 0;
    store_half(result + result_place(x, batch, first_row + r, column), totals[r] == 0 ? empty : sum / totals[r]);
  }
  if (kSplits > 1) synchronize_cluster();
  else __syncthreads();
}

DEVICE void attend(char* shared, int block, const Mask* mask, u16* result, idx batch, idx first_row, const Operands& x) {
  u16* const q = (u16*)shared;
  u16* const k = q + kRows * kStride;
  u16* const v = k + 2 * kKeys * kStride;
  const idx seen = kCausal ? least(x.keys, first_row + kRows) : x.keys;
  const int all = (int)((seen + kKeys - 1) / kKeys), begin = all * block / kSplits, end = all * (block + 1) / kSplits;
  Rows rows = {};
  rows.most[0] = rows.most[1] = -__int_as_float(0x7f800000);
  copy_rows(q, kStride, kWidth, kRows, first_row, x.queries, q_place, batch, x);
  const auto copy_part = [&](int part) {
    const idx first = (idx)part * kKeys;
    copy_rows(k + part % 2 * kKeys * kStride, kStride, kWidth, kKeys, first, x.keys, k_place, batch, x);
    copy_rows(v + part % 2 * kKeys * kValueStride, kValueStride, kValueWidth, kKeys, first, x.keys, v_place, batch, x);
  };
  for (int part = begin; part < begin + 2; ++part) {
    if (part < end) copy_part(part);
    commit_copies();
  }
  for (int part = begin; part < end; ++part) {
    wait_for_copies<1>();
    __syncthreads();
    attend_part(rows, q, k + part % 2 * kKeys * kStride, v + part % 2 * kKeys * kValueStride, first_row, (idx)part * kKeys, mask, batch, x);
    __syncthreads();
    if (part + 2 < end) copy_part(part + 2);
    commit_copies();
  }
  wait_for_copies<0>();
  __syncthreads();
  merge(shared, block, rows, result, batch, first_row, x);
}
)cuda";

}  // namespace

std::string_view tensor_core_functions() { return kFunctions; }
std::string_view contraction_body() { return kContraction; }
std::string_view attention_body() { return kAttention; }

}  // namespace ingot::core::cuda
