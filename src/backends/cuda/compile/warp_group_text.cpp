// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/compile/warp_group_text.h"

#include <fmt/core.h>

#include "backends/cuda/compile/tensor_core_text.h"

namespace ingot::core::cuda {
namespace {

constexpr std::string_view kBulkCopies = R"cuda(
struct __align__(64) TensorMap { u64 words[16]; };
DEVICE void copy_box(u16* to, u32 barrier, const TensorMap* map, int c0, int c1) {
  asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%3, %4}], [%2];"
               ::"r"(shared_address(to)), "l"(map), "r"(barrier), "r"(c0), "r"(c1) : "memory");
}
DEVICE void copy_box(u16* to, u32 barrier, const TensorMap* map, int c0, int c1, int c2) {
  asm volatile("cp.async.bulk.tensor.3d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%3, %4, %5}], [%2];"
               ::"r"(shared_address(to)), "l"(map), "r"(barrier), "r"(c0), "r"(c1), "r"(c2) : "memory");
}
DEVICE void copy_box(u16* to, u32 barrier, const TensorMap* map, int c0, int c1, int c2, int c3) {
  asm volatile("cp.async.bulk.tensor.4d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%3, %4, %5, %6}], [%2];"
               ::"r"(shared_address(to)), "l"(map), "r"(barrier), "r"(c0), "r"(c1), "r"(c2), "r"(c3) : "memory");
}
DEVICE void copy_box(u16* to, u32 barrier, const TensorMap* map, int c0, int c1, int c2, int c3, int c4) {
  asm volatile("cp.async.bulk.tensor.5d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%3, %4, %5, %6, %7}], [%2];"
               ::"r"(shared_address(to)), "l"(map), "r"(barrier), "r"(c0), "r"(c1), "r"(c2), "r"(c3), "r"(c4) : "memory");
}
// The places of a window at (x, y), of consecutive results from the one whose window begins at (first_x, first_y).
DEVICE void copy_window(u16* to, u32 barrier, const TensorMap* map, int channel, int first_x, int first_y, int image, int x, int y) {
  asm volatile("cp.async.bulk.tensor.4d.shared::cluster.global.im2col.mbarrier::complete_tx::bytes [%0], [%1, {%3, %4, %5, %6}], [%2], {%7, %8};"
               ::"r"(shared_address(to)), "l"(map), "r"(barrier), "r"(channel), "r"(first_x), "r"(first_y), "r"(image), "h"((u16)x), "h"((u16)y) : "memory");
}
// True in exactly one lane; all lanes of the warp must call it. ptxas wraps bulk copies that another condition guards in a
// loop over the lanes.
DEVICE bool is_elected() {
  u32 elected;
  asm volatile("{\n.reg .pred one;\nelect.sync _|one, 0xffffffff;\nselp.u32 %0, 1, 0, one;\n}" : "=r"(elected));
  return elected != 0;
}
// A value that is equal in all lanes of the warp, as ptxas cannot tell by itself.
DEVICE int uniform(int number) { return __shfl_sync(~0u, number, 0); }
DEVICE void fetch_map(const TensorMap* map) { asm volatile("prefetch.tensormap [%0];" ::"l"(map) : "memory"); }

// Barriers count arrivals and bytes; a phase ends when both have come. Phases alternate between 0 and 1.
DEVICE void make_barrier(u32 barrier, int arrivals) { asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(barrier), "r"(arrivals) : "memory"); }
DEVICE void show_barriers() { asm volatile("fence.mbarrier_init.release.cluster;\nfence.proxy.async.shared::cta;" ::: "memory"); }
DEVICE void arrive(u32 barrier) { asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(barrier) : "memory"); }
DEVICE void arrive_and_expect(u32 barrier, u32 bytes) { asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier), "r"(bytes) : "memory"); }
DEVICE void wait_for_phase(u32 barrier, u32 phase) {
  asm volatile("{\n.reg .pred done;\nWAIT:\nmbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\n@done bra DONE;\nbra WAIT;\nDONE:\n}" ::"r"(barrier), "r"(phase) : "memory");
}
// The same for what blocks of the cluster send.
DEVICE void wait_for_shares(u32 barrier, u32 phase) {
  asm volatile("{\n.reg .pred done;\nWAIT:\nmbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 done, [%0], %1;\n@done bra DONE;\nbra WAIT;\nDONE:\n}" ::"r"(barrier), "r"(phase) : "memory");
}
DEVICE u32 address_in_block(u32 address, int block) {
  u32 remote;
  asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(remote) : "r"(address), "r"(block));
  return remote;
}
DEVICE void send_four(u32 to, u32 barrier, f32 a, f32 b, f32 c, f32 d) {
  asm volatile("st.async.shared::cluster.mbarrier::complete_tx::bytes.v4.f32 [%0], {%2, %3, %4, %5}, [%1];" ::"r"(to), "r"(barrier), "f"(a), "f"(b), "f"(c), "f"(d) : "memory");
}
// From this block's shared memory to that of a block of the cluster, whose barrier counts the bytes.
DEVICE void copy_to_block(u32 to, u32 barrier, const void* from, int bytes) {
  asm volatile("cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(to), "r"(shared_address(from)), "r"(bytes), "r"(barrier) : "memory");
}
// Barriers are shown (show_barriers) to blocks that arrive, not what else was written: that would take a microsecond.
DEVICE void arrive_at_cluster() { asm volatile("barrier.cluster.arrive.relaxed;" ::: "memory"); }
DEVICE void wait_for_cluster() { asm volatile("barrier.cluster.wait.acquire;" ::: "memory"); }
// What threads wrote to shared memory comes before what bulk copies and warp groups do there.
DEVICE void order_shared_memory() { asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); }

)cuda";

constexpr std::string_view kGroupProducts = R"cuda(
// Matrices of 64 halves a row, stored with the swizzle of 128 bytes (PTX ISA, "Matrix descriptor").
DEVICE u64 matrix_of(const u16* place) { return (u64)((shared_address(place) & 0x3ffff) >> 4) | 1ull << 16 | (u64)(1024 >> 4) << 32 | 1ull << 62; }
DEVICE void begin_products() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }
DEVICE void commit_products() { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }
// Registers of sums may not be copied while products are under way.
template <int count> DEVICE void hold_sums(f32 (&sums)[count][4]) {
  #pragma unroll
  for (int j = 0; j < count; ++j) asm volatile("" : "+f"(sums[j][0]), "+f"(sums[j][1]), "+f"(sums[j][2]), "+f"(sums[j][3])::"memory");
}
template <int pending> DEVICE void wait_for_products() { asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(pending) : "memory"); }
)cuda";

//   the last warp group, one thread of which copies, and which helps with the epilogue:
//     weights of the first kStages parts of (its block's share of) the depth; wait for the predecessor; the
//     remaining parts, as buffers become free
//   each of the others: its 64 rows of a times all columns of b, part by part, in registers
//   sums -> shared memory, in a cluster that of the block which finishes the row -> epilogue
constexpr std::string_view kGroupConstants = R"cuda(
constexpr int kGroups = kRows / 64, kThreads = (kGroups + 1) * 128, kSumStride = kColumns + 4, kReaders = kGroups * 4;
constexpr int kMultipliers = kGroups * 128;  // threads
constexpr int kATile = kRows * kDepth, kBTile = kColumns * kDepth, kPartBytes = (kATile + kBTile) * 2;
constexpr int kAllPartBytes = kStages * kPartBytes, kSumBytes = kRows * kSumStride * 4;
constexpr int kRoomBytes = kAllPartBytes > kSumBytes ? kAllPartBytes : kSumBytes;  // of parts, then of a block's sums
constexpr int kTileBytes = kSplits > 1 ? kRoomBytes + kSumBytes : kRoomBytes;
constexpr int kSpare = 64;  // threads, the last, that neither copy nor multiply
constexpr int kOthers = kSplits > 1 ? 1 : 0, kOtherArrivals = 1;
)cuda";

// Parts of the depth on their way from memory to the warps of kReaders, which release them. These loops are
// not unrolled: code that runs once takes longer to fetch than to run.
constexpr std::string_view kGroupParts = R"cuda(
// The buffer of a part, and the phase of its barriers.
struct Place {
  int stage;
  u32 phase;
  __device__ __forceinline__ void advance() { if (++stage == kStages) stage = 0, phase ^= 1; }
};
struct Parts {
  u16* tiles;  // [kStages][a, b]
  u32 full, empty;  // barriers, kStages each
  u32 others;       // barriers, kOthers: of sums from the blocks of the cluster, or of turns
  int used, turn;   // parts of earlier tiles, and their number
  __device__ __forceinline__ Place next() const { return {used % kStages, (u32)(used / kStages) & 1}; }
  __device__ __forceinline__ u16* a(int stage) const { return tiles + stage * (kATile + kBTile); }
  __device__ __forceinline__ u16* b(int stage) const { return a(stage) + kATile; }
  __device__ __forceinline__ void wait_for(const Place& place) const { wait_for_phase(full + place.stage * 8, place.phase); }
  __device__ __forceinline__ void release(int stage) const { if (threadIdx.x % 32 == 0) arrive(empty + stage * 8); }
};
// Branches on uniform values: inside them ptxas keeps loop counters and matrix descriptors in uniform registers.
DEVICE bool is_copier() { return uniform(threadIdx.x / 32) == kGroups * 4; }  // the last group's first warp
DEVICE bool is_multiplier() { return uniform(threadIdx.x / 128) < kGroups; }

DEVICE Parts make_parts(char* shared, bool aligned, const TensorMap* a_map, const TensorMap* b_map) {
  Parts parts;
  parts.tiles = (u16*)shared;
  parts.full = shared_address(shared + kTileBytes);
  parts.empty = parts.full + kStages * 8;
  parts.others = parts.empty + kStages * 8;
  parts.used = parts.turn = 0;
  if (threadIdx.x == kGroups * 128) {
    if (aligned) fetch_map(a_map), fetch_map(b_map);
    for (int s = 0; s < kStages; ++s) {
      make_barrier(parts.full + s * 8, 1);
      make_barrier(parts.empty + s * 8, kReaders);
    }
    for (int s = 0; s < kOthers; ++s) make_barrier(parts.others + s * 8, kOtherArrivals);
    show_barriers();
  }
  __syncthreads();
  if (kSplits > 1 && aligned) arrive_at_cluster();
  return parts;
}

DEVICE void copy_parts(const Parts& p, int first, int parts, idx batch, idx first_row, idx first_column, const TensorMap* a_map, const TensorMap* b_map, const Operands& x) {
  const int ahead = p.used > 0 ? 0 : parts < kStages ? parts : kStages;  // of the kernel before
  const auto copy_b = [&](int part, int stage) { copy_b_box(p.b(stage), p.full + stage * 8, b_map, x, batch, first_column, (idx)(first + part) * kDepth); };
  #pragma unroll 1
  for (int part = 0; part < ahead; ++part) {
    if (is_elected()) {
      arrive_and_expect(p.full + part * 8, kPartBytes);
      if (kBIsWeight) copy_b(part, part);
    }
    __syncwarp();
  }
  wait_for_previous();
  Place place = p.next();
  #pragma unroll 1
  for (int part = 0; part < parts; ++part, place.advance()) {
    if (part >= ahead) wait_for_phase(p.empty + place.stage * 8, place.phase ^ 1);
    if (is_elected()) {
      if (part >= ahead) arrive_and_expect(p.full + place.stage * 8, kPartBytes);
      copy_a_box(p.a(place.stage), p.full + place.stage * 8, a_map, x, batch, first_row, (idx)(first + part) * kDepth);
      if (!kBIsWeight || part >= ahead) copy_b(part, place.stage);
    }
    __syncwarp();
  }
}

)cuda";

constexpr std::string_view kMultiplyParts = R"cuda(
DEVICE void multiply_parts(f32 (&sums)[kColumns / 8][4], const Parts& p, int parts) {
  const int group = kGroups == 1 ? 0 : uniform(threadIdx.x / 128);
  Place place = p.next();
  int before = 0;
  #pragma unroll 1
  for (int part = 0; part < parts; ++part, place.advance()) {
    p.wait_for(place);
    if (kNextWithOperands && part + 1 == parts) let_next_start();
    hold_sums(sums);
    begin_products();
    const u64 a = matrix_of(p.a(place.stage) + group * 64 * kDepth), b = matrix_of(p.b(place.stage));
    #pragma unroll
    for (int k = 0; k < kDepth / 16; ++k) multiply_group(sums, a + k * 2, b + k * 2);
    commit_products();
    hold_sums(sums);
    if (part > 0) {
      wait_for_products<1>();
      p.release(before);
    }
    before = place.stage;
  }
  wait_for_products<0>();
  hold_sums(sums);
  p.release(before);
}
)cuda";

// The sums of a group's rows, [kRows][kSumStride].
constexpr std::string_view kGroupSums = R"cuda(
DEVICE void keep_group_sums(f32* to, const f32 (&sums)[kColumns / 8][4]) {
  const int lane = threadIdx.x % 32, row = threadIdx.x / 32 * 16 + lane / 4;
  #pragma unroll
  for (int j = 0; j < kColumns / 8; ++j)
    #pragma unroll
    for (int h = 0; h < 2; ++h)
      *(u64*)(to + (row + h * 8) * kSumStride + j * 8 + lane % 4 * 2) =
          (u64)__float_as_uint(sums[j][2 * h]) | (u64)__float_as_uint(sums[j][2 * h + 1]) << 32;
}
)cuda";

// One block has all of a tile's depth: its sums take the place of the parts.
constexpr std::string_view kSumsOfBlock = R"cuda(
DEVICE void share_sums(char* shared, const Parts&, int, const f32 (&sums)[kColumns / 8][4]) {
  __syncthreads();  // all have read all parts
  if (is_multiplier()) keep_group_sums((f32*)shared, sums);
  __syncthreads();
}
DEVICE void end_tile(bool last) { if (!last) order_shared_memory(), __syncthreads(); }
)cuda";

// Each block finishes an equal share of the rows, for which the others send it their sums.
constexpr std::string_view kSumsOfCluster = R"cuda(
constexpr int kOwnRows = kRows / kSplits, kOwnSums = kOwnRows * kSumStride;
// What block `from` has for the rows of block `owner`, which this is: [kOwnRows][kSumStride]. Its own stay where they are:
// bulk copies are for other blocks.
DEVICE f32* share_in(char* shared, int from, int owner) { return from == owner ? (f32*)shared + owner * kOwnSums : (f32*)(shared + kRoomBytes) + from * kOwnSums; }

// A block's sums take the place of its parts, and are copied from there: threads that send their numbers themselves
// take half as long again.
DEVICE void send_sums(char* shared, const Parts& p, int share, const f32 (&sums)[kColumns / 8][4]) {
  if (is_multiplier()) keep_group_sums((f32*)shared, sums);
  order_shared_memory();
  __syncthreads();
  if (!is_copier()) return;
  #pragma unroll 1
  for (int owner = 0; owner < kSplits; ++owner) {
    if (owner == share) continue;
    if (is_elected())
      copy_to_block(address_in_block(shared_address(share_in(shared, share, owner)), owner), address_in_block(p.others, owner), (f32*)shared + owner * kOwnSums, kOwnSums * 4);
    __syncwarp();
  }
}

DEVICE void share_sums(char* shared, const Parts& p, int share, const f32 (&sums)[kColumns / 8][4]) {
  if (threadIdx.x == 0) arrive_and_expect(p.others, (kSplits - 1) * kOwnSums * 4);
  if (p.turn == 0) wait_for_cluster();  // all blocks have made their barriers
  __syncthreads();  // all have read all parts
  send_sums(shared, p, share, sums);
  wait_for_shares(p.others, p.turn & 1);
  arrive_at_cluster();
}

DEVICE void multiply_one_by_one(char* shared, int share, idx batch, idx first_row, idx first_column, const Operands& x) {
  for (int i = threadIdx.x; i < kRows * kColumns; i += kThreads) {
    const int own = i / kColumns;
    const idx row = first_row + share * kOwnRows + own, column = first_column + i % kColumns;
    const bool is_own = own < kOwnRows && row < x.rows && column < x.columns;
    share_in(shared, own / kOwnRows, share)[own % kOwnRows * kSumStride + i % kColumns] = is_own ? sum_one_by_one(0, x.depth, batch, row, column, x) : 0;
  }
  arrive_at_cluster();
  __syncthreads();
}

// In place of all shares.
DEVICE void keep_sum(char* shared, int row, int column, f32 sum) {
  for (int s = 0; s < kSplits; ++s) share_in(shared, s, row / kOwnRows)[row % kOwnRows * kSumStride + column] = s == 0 ? sum : 0;
}

// The shares of the cluster's blocks, in order.
DEVICE void add_shares_of(f32 (&sums)[kWide], char* shared, int row, int column) {
  #pragma unroll
  for (int s = 0; s < kSplits; ++s) {
    const f32* const place = share_in(shared, s, row / kOwnRows) + row % kOwnRows * kSumStride + column;
    #pragma unroll
    for (int k = 0; k < kWide; ++k) sums[k] = s == 0 ? place[k] : sums[k] + place[k];
  }
}
// A block ends when what others copied from it has been copied; bulk copies of the next tile replace what was read.
DEVICE void end_tile(bool last) {
  wait_for_cluster();
  if (!last) order_shared_memory(), synchronize_cluster();
}
)cuda";

constexpr std::string_view kGroupTile = R"cuda(
template <class Begin, class End> DEVICE void multiply_tile(char* shared, Parts& p, int share, idx batch, idx first_row, idx first_column, const TensorMap* a_map, const TensorMap* b_map, const Operands& x, const Begin& begin_epilogue, const End& end_products) {
  const int all = (int)((x.depth + kDepth - 1) / kDepth), first = all * share / kSplits, parts = all * (share + 1) / kSplits - first;
  f32 sums[kColumns / 8][4] = {};
  if (is_copier()) copy_parts(p, first, parts, batch, first_row, first_column, a_map, b_map, x);
  else wait_for_previous();
  begin_epilogue();
  if (is_multiplier()) multiply_parts(sums, p, parts);
  end_products();
  share_sums(shared, p, share, sums);
  p.used += parts;
  ++p.turn;
}
)cuda";

}  // namespace

std::string_view bulk_copy_functions() { return kBulkCopies; }

std::string_view group_parts() { return kGroupParts; }
std::string_view group_product_functions() { return kGroupProducts; }

std::string group_product(const GroupProduct& product) {
  const int numbers = product.columns / 2;  // of a thread
  const int columns_innermost = product.a_in_registers ? 1 : 0;
  std::string registers, outputs;
  for (int i = 0; i < numbers; ++i) {
    registers += fmt::format("{}%{}", i == 0 ? "" : ", ", i);
    outputs += fmt::format("{}\"+f\"(sums[{}][{}])", i == 0 ? "" : ", ", i / 4, i % 4);
  }
  const std::string_view type = product.bf16 ? "bf16" : "f16";
  const std::string a = product.a_in_registers ? fmt::format("{{%{}, %{}, %{}, %{}}}", numbers, numbers + 1,
                                                             numbers + 2, numbers + 3)
                                               : fmt::format("%{}", numbers);
  return fmt::format(
      "// A thread's numbers lie as in multiply_fragments.\n"
      "DEVICE void {}(f32 (&sums)[{}][4], {}, u64 b) {{\n"
      "asm volatile(\"wgmma.mma_async.sync.aligned.m64n{}k16.f32.{}.{} {{{}}}, {}, %{}, 1, 1, 1{}, {};\" : "
      "{} : "
      "{}, \"l\"(b));\n}}\n",
      product.name, product.columns / 8, product.a_in_registers ? "const u32 (&a)[4]" : "u64 a",
      product.columns, type, type, registers, a, numbers + (product.a_in_registers ? 4 : 1),
      product.a_in_registers ? "" : ", 0", columns_innermost, outputs,
      product.a_in_registers ? "\"r\"(a[0]), \"r\"(a[1]), \"r\"(a[2]), \"r\"(a[3])" : "\"l\"(a)");
}

std::string warp_group_functions(int columns, bool bf16) {
  return std::string(kBulkCopies) + std::string(kGroupProducts) +
         group_product({.name = "multiply_group", .columns = columns, .bf16 = bf16});
}

std::string warp_group_body(int splits) {
  return std::string(kGroupConstants) + std::string(kGroupParts) + std::string(kMultiplyParts) +
         std::string(kGroupSums) +
         (splits > 1 ? std::string(kSumsOfCluster)
                     : std::string(sums_of_tiles()) + std::string(kSumsOfBlock)) +
         std::string(kGroupTile);
}

}  // namespace ingot::core::cuda
