// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/compile/peer_text.h"

#include <fmt/core.h>

#include "backends/cuda/compile/type_text.h"
#include "backends/cuda/kernel_abi.h"
#include "ops/collective.h"
#include "ops/ops.h"

namespace ingot::core::cuda {
namespace {

// A line has kEach elements, and a place of its own in each mailbox:
//   send this thread's lines to all other ranks
//   for each of its lines: wait until it has come from all of them, and add in the order of the ranks
constexpr std::string_view kPeerLines = R"cuda(
constexpr int kEach = kPeerLine / sizeof(Stored);
struct __align__(8) Line { Stored each[kEach]; };
struct Words { u64 first, second; };

DEVICE u64 word_of(const Line& line) { u64 word; memcpy(&word, &line, sizeof(word)); return word; }
DEVICE Line line_of(u64 word) { Line line; memcpy(&line, &word, sizeof(word)); return line; }

DEVICE Line own_line(const Stored* x, i64 line, i64 elements) {
  const Stored* from = x + line * kEach;
  if (((u64)x & (kPeerLine - 1)) == 0 && (line + 1) * kEach <= elements) return *(const Line*)from;
  Line own;
  #pragma unroll
  for (int k = 0; k < kEach; ++k) own.each[k] = line * kEach + k < elements ? from[k] : Stored(0);
  return own;
}
DEVICE void put_line(Stored* y, i64 line, i64 elements, const Line& own) {
  Stored* to = y + line * kEach;
  if (((u64)y & (kPeerLine - 1)) == 0 && (line + 1) * kEach <= elements) { *(Line*)to = own; return; }
  #pragma unroll
  for (int k = 0; k < kEach; ++k)
    if (line * kEach + k < elements) to[k] = own.each[k];
}

// Accesses of 64 bits are whole, which is all that a line relies on.
DEVICE void store_words(u64 place, Words words) {
  asm volatile("st.volatile.global.v2.u64 [%0], {%1, %2};" :: "l"(place), "l"(words.first), "l"(words.second) : "memory");
}
DEVICE Words load_words(u64 place) {
  Words words;
  asm volatile("ld.volatile.global.v2.u64 {%0, %1}, [%2];" : "=l"(words.first), "=l"(words.second) : "l"(place) : "memory");
  return words;
}
constexpr u64 kArrived = 1ull << 32;

struct Peers {
  u64 mailboxes[kMostPeers];
  int rank, ranks;
  const volatile i32* is_over;
  u64 half;   // of a mailbox: its offset in bytes
  i64 lines;  // of a part

  static __device__ __forceinline__ u64 offset_of(u64 half, i64 lines, int part, i64 line) { return half + (u64)(part * lines + line) * 16; }

  __device__ __forceinline__ void send(i64 line, const Line& own) const {
    const u64 word = word_of(own);
    const Words words = {(word & 0xffffffffull) | kArrived, (word >> 32) | kArrived};
    #pragma unroll
    for (int k = 0; k < kMostPeers; ++k)
      if (k < ranks && k != rank) store_words(mailboxes[k] + offset_of(half, lines, rank, line), words);
  }
  // Undefined after a failure of the group.
  __device__ __forceinline__ Line receive(u64 mailbox, int from, i64 line) const {
    const u64 place = mailbox + offset_of(half, lines, from, line);
    Words words = load_words(place);
    for (u32 looks = 1; ((words.first & words.second) & kArrived) == 0; ++looks) {
      if (looks % 1024 == 0 && *is_over != 0) break;
      words = load_words(place);
    }
    store_words(place, {0, 0});
    return line_of((words.first & 0xffffffffull) | words.second << 32);
  }
};
)cuda";

constexpr std::string_view kPeerBegin = R"cuda(
  wait_for_previous();
  let_next_start();
  const i64 lines = (elements + kEach - 1) / kEach, step = (i64)gridDim.x * blockDim.x;
  const i64 first = (i64)blockIdx.x * blockDim.x + threadIdx.x;
  const u32 count = *(volatile u32*)counts;
  const Peers peers = {{m0, m1, m2, m3, m4, m5, m6, m7}, (int)rank, (int)ranks, (const volatile i32*)is_over,
                       (count & 1) * (kMailboxBytes / 2), kMailboxBytes / (2 * 16 * ranks)};
  u64 mailbox = 0;
  #pragma unroll
  for (int k = 0; k < kMostPeers; ++k) if (k == peers.rank) mailbox = peers.mailboxes[k];
  Line own = {};
  if (first < lines) { own = own_line(x, first, elements); peers.send(first, own); }
  for (i64 line = first + step; line < lines; line += step) peers.send(line, own_line(x, line, elements));
  for (i64 line = first; line < lines; line += step) {
    if (line != first) own = own_line(x, line, elements);
)cuda";
constexpr std::string_view kPeerSum = R"cuda(
    f32 sums[kEach];
    #pragma unroll
    for (int k = 0; k < kMostPeers; ++k) {
      if (k >= peers.ranks) break;
      const Line part = k == peers.rank ? own : peers.receive(mailbox, k, line);
      #pragma unroll
      for (int e = 0; e < kEach; ++e) sums[e] = k == 0 ? load(&part.each[e]) : sums[e] + load(&part.each[e]);
    }
    Line result;
    #pragma unroll
    for (int e = 0; e < kEach; ++e) store(&result.each[e], finish(sums[e], peers.ranks));
    put_line(y, line, elements, result);
)cuda";
constexpr std::string_view kPeerEnd = R"cuda(
  }
  __syncthreads();  // all of the block have read the count
  if (threadIdx.x == 0 && atomicInc((u32*)counts + 1, gridDim.x - 1) == gridDim.x - 1) *(volatile u32*)counts = count + 1;
}
)cuda";

}  // namespace

bool has_peer_kernel(const Node& node) {
  if (node.op != &ops::all_reduce) return false;
  const DType dtype = node.operand_type(0).dtype;
  const std::string& reduction = node.attributes<ops::ReducingCollective>().reduction;
  return (dtype == DType::kF32 || dtype == DType::kF16 || dtype == DType::kBF16) &&
         (reduction == "sum" || reduction == "avg");
}

std::string peer_entry(const Node& node) {
  return fmt::format("{}{}_{}", kPeerEntry, node.attributes<ops::ReducingCollective>().reduction,
                     name(node.operand_type(0).dtype));
}

std::string write_peer_kernel(const Node& node, const PeerNext& next) {
  const DType dtype = node.operand_type(0).dtype;
  const bool is_average = node.attributes<ops::ReducingCollective>().reduction == "avg";
  std::string text = fmt::format("typedef {} Stored;\n", storage_name(dtype));
  text += fmt::format("constexpr int kMostPeers = {}, kPeerLine = {};\nconstexpr i64 kMailboxBytes = {};\n",
                      kMostPeers, kPeerLine, kMailboxBytes);
  if (dtype == DType::kF32)
    text += "DEVICE f32 load(const f32* p) { return *p; }\nDEVICE void store(f32* p, f32 v) { *p = v; }\n";
  else
    text += fmt::format(
        "DEVICE f32 load(const u16* p) {{ return load_{0}(p); }}\nDEVICE void store(u16* p, f32 v) "
        "{{ store_{0}(p, v); }}\n",
        name(dtype));
  text += fmt::format("DEVICE f32 finish(f32 sum, int ranks) {{ return {}; }}\n",
                      is_average ? "sum / (f32)ranks" : "sum");
  text += kPeerLines;
  text += fmt::format(
      "extern \"C\" __global__ void __launch_bounds__({}) {}(const Stored* x, Stored* y, i64 elements, "
      "u64 m0, u64 m1, u64 m2, u64 m3, u64 m4, u64 m5, u64 m6, u64 m7, u64 counts, u64 is_over, "
      "u64 rank, u64 ranks{}) {{",
      kPeerThreads, peer_entry(node) + (next.arguments.empty() ? "" : kPeerNext), next.arguments);
  for (const std::string_view part : {std::string_view(next.begin), kPeerBegin, std::string_view(next.loads),
                                      kPeerSum, std::string_view(next.line), kPeerEnd})
    text += part;
  return text;
}

}  // namespace ingot::core::cuda
