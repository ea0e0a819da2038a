// SPDX-License-Identifier: Apache-2.0
// Sorting and selection along an axis: a block takes a line at a time. Items are keys and indices, no two of
// them equal, so that any way to sort them gives the stable order.
#include <algorithm>
#include <bit>

#include "backends/cuda/compile/routine_kernels.h"
#include "backends/cuda/compile/type_text.h"
#include "ops/axis.h"
#include "ops/ops.h"
#include "ops/sort.h"

namespace ingot::core::cuda {
namespace {

constexpr int kMostSortThreads = 1024, kFewestSortThreads = 64;
constexpr int64_t kMostSelected = 1024;  // of a line, without sorting all of it: at most half a chunk

// Keys have the order of routines/sort_keys.h: NaN is the largest, both zeros are equal.
constexpr std::string_view kSortKeys = R"cuda(
template <class T> struct KeyOf { typedef u32 type; };
template <> struct KeyOf<i64> { typedef u64 type; };
template <> struct KeyOf<f64> { typedef u64 type; };
DEVICE u32 key_of(u8 v) { return v; }
DEVICE u32 key_of(i8 v) { return (u32)(i32)v ^ 0x80000000u; }
DEVICE u32 key_of(i16 v) { return (u32)(i32)v ^ 0x80000000u; }
DEVICE u32 key_of(i32 v) { return (u32)v ^ 0x80000000u; }
DEVICE u64 key_of(i64 v) { return (u64)v ^ 0x8000000000000000ull; }
DEVICE u32 key_of(u16 bits) {
  const u32 magnitude = bits & 0x7fffu;
  if (magnitude > kInfinity) return ~0u;
  return bits & 0x8000u ? 0x8000u - magnitude : 0x8000u + magnitude;
}
DEVICE u32 key_of(f32 v) {
  if (v != v) return ~0u;
  const u32 bits = __float_as_uint(v == 0 ? 0.0f : v);
  return bits >> 31 ? ~bits : bits | 0x80000000u;
}
DEVICE u64 key_of(f64 v) {
  if (v != v) return ~0ull;
  const u64 bits = (u64)__double_as_longlong(v == 0 ? 0.0 : v);
  return bits >> 63 ? ~bits : bits | 0x8000000000000000ull;
}

struct Narrow {  // key and index in one number
  u64 both;
  static DEVICE_FUNCTION Narrow make(u32 key, u32 index) { return {(u64)key << 32 | index}; }
  DEVICE_FUNCTION bool before(const Narrow& other) const { return both < other.both; }
  DEVICE_FUNCTION u32 index() const { return (u32)both; }
  DEVICE_FUNCTION u32 key() const { return (u32)(both >> 32); }
};
struct Wide {
  u64 first;
  u32 second;
  static DEVICE_FUNCTION Wide make(u64 key, u32 index) { return {key, index}; }
  DEVICE_FUNCTION bool before(const Wide& other) const { return first != other.first ? first < other.first : second < other.second; }
  DEVICE_FUNCTION u32 index() const { return second; }
  DEVICE_FUNCTION u64 key() const { return first; }
};
template <class Key> struct ItemOf { typedef Narrow type; };
template <> struct ItemOf<u64> { typedef Wide type; };
typedef KeyOf<Stored>::type Key;
typedef ItemOf<Key>::type Item;

DEVICE Item last_item() { return Item::make((Key)~(Key)0, ~0u); }
DEVICE Item item_of(const Stored* line, i64 stride, i64 i) {
  const Key key = key_of(line[i * stride]);
  return Item::make(kDescending ? (Key)~key : key, (u32)i);
}

// size: a power of two
DEVICE void sort_shared(Item* items, i32 size) {
  for (i32 run = 2; run <= size; run <<= 1)
    for (i32 apart = run >> 1; apart > 0; apart >>= 1) {
      __syncthreads();
      for (i32 pair = threadIdx.x; pair < size / 2; pair += kSortThreads) {
        const i32 low = 2 * pair - (pair & (apart - 1)), high = low + apart;
        const Item a = items[low], b = items[high];
        if (b.before(a) == ((low & run) == 0)) {
          items[low] = b;
          items[high] = a;
        }
      }
    }
  __syncthreads();
}
DEVICE i32 power_of_two(i64 size) {
  i32 power = 2;
  while (power < size) power <<= 1;
  return power;
}
)cuda";

//   for each chunk of the line: sorted in shared memory
//   while there are several runs: each element of one goes behind the elements of its neighbour before it
constexpr std::string_view kSortAll = R"cuda(
DEVICE const Item* sort_line(const Stored* line, i64 stride, i64 size, Item* shared, Item* from, Item* to) {
  for (i64 begin = 0; begin < size; begin += kChunk) {
    const i32 count = (i32)least<i64>(kChunk, size - begin), power = power_of_two(count);
    for (i32 i = threadIdx.x; i < power; i += kSortThreads) shared[i] = i < count ? item_of(line, stride, begin + i) : last_item();
    sort_shared(shared, power);
    if (size <= kChunk) return shared;
    for (i32 i = threadIdx.x; i < count; i += kSortThreads) from[begin + i] = shared[i];
    __syncthreads();
  }
  for (i64 run = kChunk; run < size; run *= 2) {
    for (i64 i = threadIdx.x; i < size; i += kSortThreads) {
      const i64 own = i / run, first = (own ^ 1) * run, end = least(first + run, size);
      const Item item = from[i];
      i64 low = least(first, size), high = most(low, end);
      while (low < high) {
        const i64 middle = (low + high) / 2;
        if (from[middle].before(item)) low = middle + 1;
        else high = middle;
      }
      to[own / 2 * 2 * run + (i - own * run) + (low - least(first, size))] = item;
    }
    __syncthreads();
    Item* const other = from;
    from = to;
    to = other;
  }
  return from;
}
)cuda";

// The first kSelected items of a line in order: what may be among them is gathered, and sorted whenever the
// room is full. Which of two threads gathers first does not matter: what is gathered is sorted.
constexpr std::string_view kSelectFirst = R"cuda(
DEVICE const Item* sort_line(const Stored* line, i64 stride, i64 size, Item* shared, Item*, Item*) {
  constexpr i32 kEach = kChunk / 2 / kSortThreads, kStep = kEach * kSortThreads;  // half of the room
  __shared__ i32 gathered;
  __syncthreads();
  for (i32 i = threadIdx.x; i < kChunk; i += kSortThreads) shared[i] = last_item();
  if (threadIdx.x == 0) gathered = kSelected;
  __syncthreads();
  for (i64 begin = 0; begin < size; begin += kStep) {
    const Item bound = shared[kSelected - 1];
    Item items[kEach];
    #pragma unroll
    for (i32 k = 0; k < kEach; ++k) {
      const i64 i = begin + k * kSortThreads + threadIdx.x;
      items[k] = i < size ? item_of(line, stride, i) : last_item();
    }
    #pragma unroll
    for (i32 k = 0; k < kEach; ++k)
      if (items[k].before(bound)) shared[atomicAdd(&gathered, 1)] = items[k];
    __syncthreads();
    const bool is_full = gathered + kStep > kChunk || begin + kStep >= size;
    __syncthreads();  // all have read the count
    if (is_full) {
      sort_shared(shared, kChunk);
      for (i32 i = kSelected + threadIdx.x; i < kChunk; i += kSortThreads) shared[i] = last_item();
      if (threadIdx.x == 0) gathered = kSelected;
      __syncthreads();
    }
  }
  return shared;
}
)cuda";

// The results of a line: `count` items from `first`, or the first NaN if there is one.
constexpr std::string_view kLines = R"cuda(
  for (i64 number = blockIdx.x; number < lines; number += gridDim.x) {
    const i64 outer = number / inner, at = number % inner;
    const Stored* const line = (const Stored*)x0 + outer * extent * inner + at;
    const Item* const items = sort_line(line, inner, extent, (Item*)shared, (Item*)own_scratch, (Item*)own_scratch + extent);
    i64 begin = first;
    if (kFirstNan) {
      i64 low = 0, high = extent;
      while (low < high) {
        const i64 middle = (low + high) / 2;
        if (items[middle].key() != (Key)~(Key)0) low = middle + 1;
        else high = middle;
      }
      if (low < extent) begin = low;
    }
    for (i64 i = threadIdx.x; i < count; i += kSortThreads) {
      const i64 index = items[begin + i].index(), place = (outer * count + i) * inner + at;
      ((Stored*)y0)[place] = line[index * inner];
      y1[place] = index;
    }
    __syncthreads();
  }
}
)cuda";

// What a node wants of a sorted line.
struct Wanted {
  int64_t axis = 0;
  bool descending = false, first_nan = false;
  Dim first = 0, count = 1;
};

Wanted wanted_of(const Node& node) {
  if (node.op == &ops::sort) {
    const auto sort = node.attributes<ops::Sort>();
    return {sort.axis, sort.descending, false, 0, node.operand_type(0).shape[static_cast<size_t>(sort.axis)]};
  }
  if (node.op == &ops::top_k) {
    const auto top = node.attributes<ops::TopK>();
    return {top.axis, top.largest, false, 0, top.count};
  }
  if (node.op == &ops::kth_value) {
    const auto kth = node.attributes<ops::KthValue>();
    return {kth.axis, false, false, kth.rank, 1};
  }
  const int64_t axis = node.attributes<ops::Axis>().axis;
  const Dim& extent = node.operand_type(0).shape[static_cast<size_t>(axis)];
  return {axis, false, is_floating(node.operand_type(0).dtype), floor_divide(extent - Dim(1), Dim(2)), 1};
}

int64_t item_bytes_of(const Node& node) { return bit_width(node.operand_type(0).dtype) == 64 ? 16 : 8; }
// Items that are sorted in shared memory.
int64_t chunk_of(const Node& node) {
  constexpr int64_t kSharedBytes = 32768;
  return kSharedBytes / item_bytes_of(node);
}

// Each moves a pair of items at a time.
int threads_of(const Node& node) {
  const auto extent = sorted_extent(node).constant();
  int threads = kFewestSortThreads;
  while (threads < kMostSortThreads && (!extent || 2 * threads < *extent)) threads *= 2;
  return threads;
}

}  // namespace

const Dim& sorted_extent(const Node& node) {
  return node.operand_type(0).shape[static_cast<size_t>(wanted_of(node).axis)];
}

bool selects(const Node& node) {
  const Wanted wanted = wanted_of(node);
  const auto last = (wanted.first + wanted.count).constant(), extent = sorted_extent(node).constant();
  const bool fits = extent && *extent <= chunk_of(node);
  return !fits && last && *last >= 1 && *last <= kMostSelected && !wanted.first_nan;
}

TemplateKernel write_sort(const Node& node, const SymbolTable& symbols) {
  const TensorType& x = node.operand_type(0);
  const Wanted wanted = wanted_of(node);
  const auto axis = static_cast<size_t>(wanted.axis);
  const Dim extent = x.shape[axis], outer = product(std::span(x.shape).first(axis)),
            inner = product(std::span(x.shape).subspan(axis + 1));
  const int threads = threads_of(node);
  const bool few = selects(node), fits = extent.constant() && *extent.constant() <= chunk_of(node);
  const int64_t item_bytes = item_bytes_of(node);
  const int64_t chunk =
      fits ? static_cast<int64_t>(std::bit_ceil<uint64_t>(std::max<int64_t>(*extent.constant(), 2)))
           : chunk_of(node);
  TemplateText out(node, {}, symbols);
  out.line("typedef i64 idx;\ntypedef {} Stored;\n#define DEVICE_FUNCTION __device__ __forceinline__\n",
           storage_name(x.dtype));
  out.line("constexpr int kSortThreads = {}, kChunk = {}, kSelected = {};\n", threads, chunk,
           few ? *(wanted.first + wanted.count).constant() : 1);
  out.line("constexpr bool kDescending = {}, kFirstNan = {};\nconstexpr u32 kInfinity = {};\n",
           wanted.descending, wanted.first_nan, x.dtype == DType::kBF16 ? 0x7f80 : 0x7c00);
  out.text += kSortKeys;
  out.text += few ? kSelectFirst : kSortAll;
  open_routine(node, threads, out);
  out.line("__shared__ __align__(16) char shared[{}];\n", chunk * item_bytes);
  out.line("const i64 extent = {}, inner = {}, lines = {}, first = {}, count = {};\n", out.scope.text(extent),
           out.scope.text(inner), out.scope.text(outer * inner), out.scope.text(wanted.first),
           out.scope.text(wanted.count));
  out.line("if (extent >= 0xffffffffll) {{\n*status = 1;\nreturn;\n}}\nif (extent == 0) return;\n");
  out.line("char* const own_scratch = scratch + blockIdx.x * ({} * extent);\n", 2 * item_bytes);
  out.text += kLines;
  return {.threads = threads,
          .items = outer * inner,
          .scratch_bytes = fits || few ? Dim(0) : Dim(2 * item_bytes) * extent,
          .symbols = out.symbols,
          .text = out.text};
}

}  // namespace ingot::core::cuda
