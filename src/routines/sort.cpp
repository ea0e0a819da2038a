// SPDX-License-Identifier: Apache-2.0
// Stable sort along an axis. NaN counts as the largest.
#include <algorithm>
#include <vector>

#include "routines/routines.h"
#include "routines/sort_keys.h"
#include "support/error.h"
#include "support/thread_pool.h"

namespace ingot::core::routines {
namespace {

constexpr int64_t kGrainElements = 4096;  // enough work for a thread of its own

template <typename Key>
struct Scratch {
  Scratch(int workers, int64_t extent)
      : size(static_cast<size_t>(extent)), items(2 * size * static_cast<size_t>(workers)) {}
  std::span<SortItem<Key>> items_of(int worker) {
    return {items.data() + 2 * size * static_cast<size_t>(worker), size};
  }
  std::span<SortItem<Key>> spare_of(int worker) { return {items_of(worker).data() + size, size}; }
  size_t size;
  std::vector<SortItem<Key>> items;  // per worker: a line, and as much scratch space
};

// Sorts each line and keeps its first `count`; `indices` and values are [outer, count, inner].
template <typename Stored, typename Key>
void sort_lines(const RoutineCall& call, const AxisView& from, int64_t count, bool descending) {
  const auto* source = reinterpret_cast<const Stored*>(call.inputs[0].data);
  auto* values = reinterpret_cast<Stored*>(call.outputs[0].data);
  auto* indices = reinterpret_cast<int64_t*>(call.outputs[1].data);
  Scratch<Key> scratch(call.pool == nullptr ? 1 : call.pool->threads(), from.extent);
  auto sort_some = [&](int64_t begin, int64_t end, int worker) {
    const auto items = scratch.items_of(worker);
    for (int64_t line = begin; line < end; ++line) {
      const int64_t outer = line / from.inner, inner = line % from.inner;
      const Stored* first = source + outer * from.extent * from.inner + inner;
      for (size_t i = 0; i < items.size(); ++i) {
        const Key key = sort_key(first[static_cast<int64_t>(i) * from.inner]);
        items[i] = {descending ? static_cast<Key>(~key) : key, static_cast<Key>(i)};
      }
      sort_first(items, static_cast<size_t>(count), scratch.spare_of(worker));
      for (int64_t i = 0; i < count; ++i) {
        const int64_t place = (outer * count + i) * from.inner + inner;
        indices[place] = static_cast<int64_t>(items[static_cast<size_t>(i)].index);
        values[place] = first[indices[place] * from.inner];
      }
    }
  };
  const int64_t lines = from.outer * from.inner;
  const int64_t grain = std::max<int64_t>(1, kGrainElements / std::max<int64_t>(1, from.extent));
  if (call.pool == nullptr) return sort_some(0, lines, 0);
  call.pool->parallel_for(lines, grain, sort_some);
}

// Keys have the width that elements and indices require.
template <typename Stored>
void sort_stored(const RoutineCall& call, const AxisView& from, int64_t count, bool descending) {
  using Key = decltype(sort_key(Stored{}));
  if (from.extent > int64_t{UINT32_MAX}) return sort_lines<Stored, uint64_t>(call, from, count, descending);
  sort_lines<Stored, Key>(call, from, count, descending);
}

// How many elements of each line are requested.
int64_t count_of(const RoutineCall& call, int64_t axis) {
  const auto require = [](bool fits) { require_fit(fits, "sort"); };
  require(call.inputs.size() == 1 && call.outputs.size() == 2);
  const TensorView &x = call.inputs[0], &values = call.outputs[0], &indices = call.outputs[1];
  require(values.dtype == x.dtype && indices.dtype == DType::kI64 && values.shape == indices.shape);
  require(axis >= 0 && axis < static_cast<int64_t>(x.shape.size()) && values.shape.size() == x.shape.size());
  const auto at = static_cast<size_t>(axis);
  std::vector<int64_t> expected = x.shape;
  expected[at] = values.shape[at];
  require(values.shape == expected && values.shape[at] <= x.shape[at]);
  return values.shape[at];
}

void sort_any(const RoutineCall& call, bool descending) {
  const int64_t axis = attribute<int64_t>(call, "axis");
  const int64_t count = count_of(call, axis);
  const AxisView from(call.inputs[0].shape, axis);
  const auto run = [&]<typename Stored>(Stored) { sort_stored<Stored>(call, from, count, descending); };
  switch (call.inputs[0].dtype) {
    case DType::kBool:
    case DType::kU8:
      return run(uint8_t{});
    case DType::kI8:
      return run(int8_t{});
    case DType::kI16:
      return run(int16_t{});
    case DType::kI32:
      return run(int32_t{});
    case DType::kI64:
      return run(int64_t{});
    case DType::kF16:
      return run(Half{});
    case DType::kBF16:
      return run(BFloat16{});
    case DType::kF32:
      return run(float{});
    case DType::kF64:
      return run(double{});
    default:
      throw UnsupportedError("INGOT-N330",
                             "sort does not support " + std::string(name(call.inputs[0].dtype)));
  }
}

}  // namespace

void sort(const RoutineCall& call) { sort_any(call, attribute<bool>(call, "descending")); }
void top_k(const RoutineCall& call) { sort_any(call, attribute<bool>(call, "largest")); }

}  // namespace ingot::core::routines
