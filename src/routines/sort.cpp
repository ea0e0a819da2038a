// SPDX-License-Identifier: Apache-2.0
// Stable sort along an axis, and selection of single elements in that order. NaN counts as the largest.
#include <algorithm>
#include <vector>

#include "routines/first_items.h"
#include "routines/line_order.h"
#include "routines/routines.h"
#include "support/error.h"
#include "support/thread_pool.h"

namespace ingot::core::routines {
namespace {

constexpr int64_t kGrainElements = 4096;  // enough work for a thread of its own
constexpr int64_t kManyTimes = 16;        // as many elements as are requested: few of them become items

template <typename Item>
struct Scratch {
  Scratch(const RoutineCall& call, size_t count)
      : size(count),
        lines(call, size * static_cast<size_t>(call.pool == nullptr ? 1 : call.pool->threads())) {}
  std::span<Item> items_of(int worker) const {
    return lines.items().subspan(size * static_cast<size_t>(worker), size);
  }
  size_t size;
  WorkingItems<Item> lines;  // `size` per worker
};

// The lines of the input along an axis, each with the keys of its elements in sorting order.
template <typename Stored, typename Key>
class Lines {
 public:
  Lines(const RoutineCall& call, int64_t axis)
      : from_(call.inputs[0].shape, axis), source_(reinterpret_cast<const Stored*>(call.inputs[0].data)) {}

  // Calls each(line, kind, items, spare) with all items of the line, over the threads of the call.
  template <typename Each>
  void for_each(const RoutineCall& call, bool descending, const Each& each) const {
    const auto count = static_cast<size_t>(from_.extent);
    if (count == 0) return;
    const Scratch<uint64_t> scratch(call, words_for_line<Key>(count));
    for_each_line(call, [&](int64_t line, int worker) {
      const auto words = scratch.items_of(worker), keys = words.last(count);
      const Stored* first = first_of(line);
      for (size_t i = 0; i < count; ++i) {
        const Key key = sort_key(first[static_cast<int64_t>(i) * from_.inner]);
        keys[i] = descending ? static_cast<Key>(~key) : key;
      }
      with_items(words, count,
                 [&](const auto& kind, auto items, auto spare) { each(line, kind, items, spare); });
    });
  }
  // Calls each(line, items) with the `count` first items of the line.
  template <bool kDescending, typename Each>
  void for_each_first(const RoutineCall& call, int64_t count, const Each& each) const {
    const auto kept = static_cast<size_t>(count);
    const Scratch<SortItem<Key>> scratch(call, items_for_first(kept));
    for_each_line(call, [&](int64_t line, int worker) {
      const auto items = scratch.items_of(worker);
      FirstItems<kDescending, Stored, Key>(first_of(line), from_.inner, kept, items)
          .select(static_cast<size_t>(from_.extent));
      each(line, items);
    });
  }
  int64_t extent() const { return from_.extent; }
  // A function that stores result i of the `count` that the line has. Integers follow from their keys, whose
  // memory is read in order; several floats have the same key.
  auto writer(const RoutineCall& call, int64_t line, int64_t count, bool descending) const {
    const int64_t inner = from_.inner, first = line / inner * count * inner + line % inner;
    return [inner, descending, from = first_of(line),
            values = reinterpret_cast<Stored*>(call.outputs[0].data) + first,
            indices = reinterpret_cast<int64_t*>(call.outputs[1].data) + first](size_t i, uint64_t key,
                                                                                uint64_t index) {
      const int64_t to = static_cast<int64_t>(i) * inner;
      if constexpr (std::is_integral_v<Stored>)
        values[to] = element_of_key<Stored>(descending ? ~key : key);
      else
        values[to] = from[static_cast<int64_t>(index) * inner];
      indices[to] = static_cast<int64_t>(index);
    };
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
    if (count > 0 && count < lines.extent() / kManyTimes) {
      const auto write = [&](int64_t line, std::span<SortItem<Key>> items) {
        const auto write_to = lines.writer(call, line, count, descending);
        for (size_t i = 0; i < static_cast<size_t>(count); ++i) write_to(i, items[i].key, items[i].index);
      };
      return descending ? lines.template for_each_first<true>(call, count, write)
                        : lines.template for_each_first<false>(call, count, write);
    }
    lines.for_each(call, descending, [&](int64_t line, const auto& kind, auto items, auto spare) {
      const auto sorted = sort_first(kind, items, static_cast<size_t>(count), spare);
      const auto write_to = lines.writer(call, line, count, descending);
      for (size_t i = 0; i < static_cast<size_t>(count); ++i)
        write_to(i, kind.key(sorted[i]), kind.position(sorted[i]));
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
    lines.for_each(call, false, [&](int64_t line, const auto& kind, auto items, auto) {
      auto selected = items.begin() + static_cast<ptrdiff_t>(rank);
      auto nan = items.end();
      if (first_nan && !std::is_integral_v<Stored>)
        nan = std::ranges::find(items, kNanKey<Stored>, [&](const auto& item) { return kind.key(item); });
      if (nan == items.end()) {
        std::nth_element(items.begin(), selected, items.end());
      } else {
        selected = nan;
      }
      lines.writer(call, line, 1, false)(0, kind.key(*selected), kind.position(*selected));
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
