// SPDX-License-Identifier: Apache-2.0
// Sorting along an axis. NaN counts as the largest, and equal elements keep their order.
#include <algorithm>
#include <numeric>
#include <vector>

#include "routines/routines.h"
#include "support/error.h"

namespace ingot::core::routines {
namespace {

// What comparisons see of an element.
template <typename Stored>
Stored key(Stored value) {
  return value;
}
struct Half {
  uint16_t bits;
};
struct BFloat16 {
  uint16_t bits;
};
float key(Half value) { return half_to_float(value.bits); }
float key(BFloat16 value) { return bfloat16_to_float(value.bits); }

template <typename Key>
bool sorts_before(Key a, Key b, bool descending) {
  if (descending) std::swap(a, b);
  return a < b || (a == a && b != b);  // NaN stands last
}

// Sorts the first `count` of each line; `indices` and values are [outer, count, inner].
template <typename Stored>
void sort_lines(const RoutineCall& call, const AxisView& from, int64_t count, bool descending) {
  const auto* source = reinterpret_cast<const Stored*>(call.inputs[0].data);
  auto* values = reinterpret_cast<Stored*>(call.outputs[0].data);
  auto* indices = reinterpret_cast<int64_t*>(call.outputs[1].data);
  std::vector<int64_t> order(static_cast<size_t>(from.extent));
  for (int64_t line = 0; line < from.outer * from.inner; ++line) {
    const int64_t outer = line / from.inner, inner = line % from.inner;
    const Stored* first = source + outer * from.extent * from.inner + inner;
    const auto before = [&](int64_t a, int64_t b) {
      const auto left = key(first[a * from.inner]), right = key(first[b * from.inner]);
      if (sorts_before(left, right, descending)) return true;
      return !sorts_before(right, left, descending) && a < b;
    };
    std::iota(order.begin(), order.end(), 0);
    std::partial_sort(order.begin(), order.begin() + count, order.end(), before);
    for (int64_t i = 0; i < count; ++i) {
      const int64_t place = (outer * count + i) * from.inner + inner;
      values[place] = first[order[static_cast<size_t>(i)] * from.inner];
      indices[place] = order[static_cast<size_t>(i)];
    }
  }
}

// How many elements of each line are wanted.
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
  const int64_t axis = integer_attribute(call, "axis");
  const int64_t count = count_of(call, axis);
  const AxisView from(call.inputs[0].shape, axis);
  const auto run = [&]<typename Stored>(Stored) { sort_lines<Stored>(call, from, count, descending); };
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
      throw UnsupportedError("INGOT-N330", "sort does not know " + std::string(name(call.inputs[0].dtype)));
  }
}

}  // namespace

void sort(const RoutineCall& call) { sort_any(call, flag_attribute(call, "descending")); }
void top_k(const RoutineCall& call) { sort_any(call, flag_attribute(call, "largest")); }

}  // namespace ingot::core::routines
