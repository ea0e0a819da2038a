// SPDX-License-Identifier: Apache-2.0
// Stable sort along an axis, and selection of single elements in that order. NaN counts as the largest.
#include <algorithm>
#include <vector>

#include "routines/first_items.h"
#include "routines/routines.h"
#include "routines/sort_keys.h"
#include "support/error.h"
#include "support/thread_pool.h"

namespace ingot::core::routines {
namespace {

constexpr int64_t kGrainElements = 4096;  // enough work for a thread of its own
constexpr int64_t kManyTimes = 16;        // as many elements as are requested: few of them become items

template <typename Key>
struct Scratch {
  Scratch(const RoutineCall& call, int64_t count)
      : size(static_cast<size_t>(count)),
        lines(call, size * static_cast<size_t>(call.pool == nullptr ? 1 : call.pool->threads())) {}
  std::span<SortItem<Key>> items_of(int worker) const {
    return lines.items().subspan(size * static_cast<size_t>(worker), size);
  }
  size_t size;
  WorkingItems<SortItem<Key>> lines;  // `size` per worker
};

// The lines of the input along an axis, each with the keys of its elements in sorting order.
template <typename Stored, typename Key>
class Lines {
 public:
  Lines(const RoutineCall& call, int64_t axis)
      : from_(call.inputs[0].shape, axis), source_(reinterpret_cast<const Stored*>(call.inputs[0].data)) {}

  // Calls each(line, items, spare) with all items of the line, over the threads of the call.
  template <typename Each>
  void for_each(const RoutineCall& call, bool descending, const Each& each) const {
    const Scratch<Key> scratch(call, 2 * from_.extent);
    for_each_line(call, [&](int64_t line, int worker) {
      const auto both = scratch.items_of(worker);
      const auto items = both.first(both.size() / 2);
      const Stored* first = first_of(line);
      for (size_t i = 0; i < items.size(); ++i) {
        const Key key = sort_key(first[static_cast<int64_t>(i) * from_.inner]);
        items[i] = {descending ? static_cast<Key>(~key) : key, static_cast<Key>(i)};
      }
      each(line, items, both.subspan(items.size()));
    });
  }
  // Calls each(line, items) with the `count` first items of the line.
  template <bool kDescending, typename Each>
  void for_each_first(const RoutineCall& call, int64_t count, const Each& each) const {
    const auto kept = static_cast<size_t>(count);
    const Scratch<Key> scratch(call, static_cast<int64_t>(items_for_first(kept)));
    for_each_line(call, [&](int64_t line, int worker) {
      const auto items = scratch.items_of(worker);
      FirstItems<kDescending, Stored, Key>(first_of(line), from_.inner, kept, items)
          .select(static_cast<size_t>(from_.extent));
      each(line, items);
    });
  }
  int64_t extent() const { return from_.extent; }
  // Writes result `i` of the `count` that each line has: the element at `index`.
  void write(const RoutineCall& call, int64_t line, int64_t count, int64_t i, int64_t index) const {
    const int64_t place = (line / from_.inner * count + i) * from_.inner + line % from_.inner;
    reinterpret_cast<Stored*>(call.outputs[0].data)[place] = first_of(line)[index * from_.inner];
    reinterpret_cast<int64_t*>(call.outputs[1].data)[place] = index;
  }

 private:
  template <typename Each>
  void for_each_line(const RoutineCall& call, const Each& each) const {
    auto run_some = [&](int64_t begin, int64_t end, int worker) {
      for (int64_t line = begin; line < end; ++line) each(line, worker);
    };
    const int64_t lines = from_.outer * from_.inner;
    const int64_t grain = std::max<int64_t>(1, kGrainElements / std::max<int64_t>(1, from_.extent));
    if (call.pool == nullptr) return run_some(0, lines, 0);
    call.pool->parallel_for(lines, grain, run_some);
  }
  const Stored* first_of(int64_t line) const {
    return source_ + line / from_.inner * from_.extent * from_.inner + line % from_.inner;
  }

  AxisView from_;
  const Stored* source_;
};

// Sorts each line and keeps its first `count`; `indices` and values are [outer, count, inner].
struct SortLines {
  int64_t count;
  bool descending;

  template <typename Stored, typename Key>
  void run(const RoutineCall& call, const Lines<Stored, Key>& lines) const {
    const auto write = [&](int64_t line, std::span<SortItem<Key>> items) {
      for (int64_t i = 0; i < count; ++i)
        lines.write(call, line, count, i, static_cast<int64_t>(items[static_cast<size_t>(i)].index));
    };
    if (count > 0 && count < lines.extent() / kManyTimes)
      return descending ? lines.template for_each_first<true>(call, count, write)
                        : lines.template for_each_first<false>(call, count, write);
    lines.for_each(call, descending, [&](int64_t line, auto items, auto spare) {
      sort_first(items, static_cast<size_t>(count), spare);
      write(line, items);
    });
  }
};

// Selects the element of each line that sorting would put at `rank`; `first_nan`: the first NaN if there is
// one.
struct SelectFromLines {
  size_t rank;
  bool first_nan;

  template <typename Stored, typename Key>
  void run(const RoutineCall& call, const Lines<Stored, Key>& lines) const {
    lines.for_each(call, false, [&](int64_t line, std::span<SortItem<Key>> items, auto) {
      auto selected = items.begin() + static_cast<ptrdiff_t>(rank);
      auto nan = items.end();
      if (first_nan && !std::is_integral_v<Stored>)
        nan = std::ranges::find(items, Key{kNanKey<Stored>}, &SortItem<Key>::key);
      if (nan == items.end()) {
        std::nth_element(items.begin(), selected, items.end());
      } else {
        selected = nan;
      }
      lines.write(call, line, 1, 0, static_cast<int64_t>(selected->index));
    });
  }
};

// Keys have the width that elements and indices require.
template <typename Stored, typename Work>
void run_stored(const RoutineCall& call, int64_t axis, const Work& work) {
  using Key = decltype(sort_key(Stored{}));
  if (call.inputs[0].shape[static_cast<size_t>(axis)] > int64_t{UINT32_MAX})
    return work.run(call, Lines<Stored, uint64_t>(call, axis));
  work.run(call, Lines<Stored, Key>(call, axis));
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

template <typename Work>
void run_any(const RoutineCall& call, int64_t axis, const Work& work) {
  const auto run = [&]<typename Stored>(Stored) { run_stored<Stored>(call, axis, work); };
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

void sort_any(const RoutineCall& call, bool descending) {
  const auto axis = attribute<int64_t>(call, "axis");
  run_any(call, axis, SortLines{count_of(call, axis), descending});
}

// `rank_of` gets the number of elements of a line.
template <typename RankOf>
void select_any(const RoutineCall& call, bool first_nan, const RankOf& rank_of) {
  const auto axis = attribute<int64_t>(call, "axis");
  require_fit(count_of(call, axis) == 1, "select");
  const int64_t extent = call.inputs[0].shape[static_cast<size_t>(axis)], rank = rank_of(extent);
  require_fit(rank >= 0 && rank < extent, "select");
  run_any(call, axis, SelectFromLines{static_cast<size_t>(rank), first_nan});
}

}  // namespace

void sort(const RoutineCall& call) { sort_any(call, attribute<bool>(call, "descending")); }
void top_k(const RoutineCall& call) { sort_any(call, attribute<bool>(call, "largest")); }
void median(const RoutineCall& call) {
  select_any(call, true, [](int64_t extent) { return (extent - 1) / 2; });
}
void kth_value(const RoutineCall& call) {
  select_any(call, false, [&](int64_t) { return attribute<int64_t>(call, "rank"); });
}

}  // namespace ingot::core::routines
