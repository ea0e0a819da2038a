// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/compile/routine_kernels.h"

namespace ingot::core::cuda {
namespace {

constexpr int kNumberingThreads = 1024;

// One block, so that the places are in order:
//   for each part of the mask, with kEach elements a thread: how many are true before those of the thread
constexpr std::string_view kNumbering = R"cuda(
constexpr int kEach = 16;
struct __align__(16) Sixteen { u8 each[kEach]; };
// The sum over the threads before this one; `total`: over all.
DEVICE i64 count_before(i32 own, i64& total) {
  __shared__ i32 sums[32];
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  const i32 inclusive = scan_warp<Add>(own, lane);
  __syncthreads();
  if (lane == 31) sums[warp] = inclusive;
  __syncthreads();
  const i32 of_warps = scan_warp<Add>(sums[lane], lane);
  total = Shuffle<i32>::from(of_warps, 31);
  return Shuffle<i32>::from(of_warps, warp) - Shuffle<i32>::from(sums[lane], warp) + inclusive - own;
}
)cuda";

constexpr std::string_view kNumberingParts = R"cuda(
i64 found = 0;
const bool aligned = ((u64)x0 & (kEach - 1)) == 0;
for (i64 begin = 0; begin < elements; begin += kEach * kNumberingThreads) {
  const i64 first = begin + (i64)threadIdx.x * kEach;
  Sixteen mask;
  if (aligned && first + kEach <= elements) mask = *(const Sixteen*)(x0 + first);
  else
    #pragma unroll
    for (int k = 0; k < kEach; ++k) mask.each[k] = first + k < elements ? x0[first + k] : 0;
  u32 bits = 0;
  #pragma unroll
  for (int k = 0; k < kEach; ++k) bits |= mask.each[k] != 0 ? 1u << k : 0;
  i64 total = 0;
  i64 to = found + count_before(__popc(bits), total);
  found += total;
  for (; bits != 0; bits &= bits - 1) {
    const idx place = first + __ffs(bits) - 1;
    if (to >= rows) {
      *status = 1;
      break;
    }
)cuda";

}  // namespace

TemplateKernel write_nonzero(const Node& node, const SymbolTable& symbols) {
  const Shape& shape = node.operand_type(0).shape;
  TemplateText out(node, {}, symbols);
  out.line("typedef i64 idx;\nconstexpr int kNumberingThreads = {};\n", kNumberingThreads);
  out.text += kNumbering;
  open_routine(node, kNumberingThreads, out);
  out.line("const i64 elements = {}, rows = {};\n", out.scope.text(product(shape)),
           out.scope.text(node.results[0]->type.shape[0]));
  out.text += kNumberingParts;
  IndexScope scope = out.scope;
  const std::vector<Dim> index = out.decode(shape, "place", "c", scope);
  for (size_t i = 0; i < index.size(); ++i)
    out.line("y0[to * {} + {}] = {};\n", index.size(), i, scope.text(index[i]));
  out.line("++to;\n}}\n}}\nif (threadIdx.x == 0 && found != rows) *status = 1;\n}}\n");
  return {.threads = kNumberingThreads, .symbols = out.symbols, .text = out.text};
}

}  // namespace ingot::core::cuda
