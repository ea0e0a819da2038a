// SPDX-License-Identifier: Apache-2.0
// Combines source elements with a copy of x sequentially: several may have the same index.
#include <algorithm>
#include <concepts>
#include <cstring>
#include <limits>
#include <type_traits>
#include <vector>

#include "routines/half_rows.h"
#include "routines/routines.h"
#include "routines/scatter_rows.h"
#include "routines/widened.h"
#include "support/target_attribute.h"

namespace ingot::core::routines {
namespace {

// One index per element of the source, or one broadcast along a dim other than the axis; all indices have
// counterparts in x.
void check_tensors(const RoutineCall& call, std::string_view routine) {
  const auto require = [&](bool fits) { require_fit(fits, routine); };
  require(call.inputs.size() == 3 && call.outputs.size() == 1);
  const TensorView &x = call.inputs[0], &indices = call.inputs[1], &source = call.inputs[2];
  const int64_t axis = attribute<int64_t>(call, "axis");
  require(axis >= 0 && axis < static_cast<int64_t>(x.shape.size()));
  require(indices.dtype == DType::kI32 || indices.dtype == DType::kI64);
  require(source.dtype == x.dtype && call.outputs[0].dtype == x.dtype && call.outputs[0].shape == x.shape);
  require(indices.shape.size() == x.shape.size() && source.shape.size() == x.shape.size());
  for (size_t i = 0; i < x.shape.size(); ++i) {
    const bool is_axis = static_cast<int64_t>(i) == axis;
    require(indices.shape[i] == source.shape[i] || (!is_axis && indices.shape[i] == 1));
    require(is_axis || source.shape[i] <= x.shape[i]);
  }
}

void copy_all(const TensorView& from, const TensorView& to) {
  const int64_t count = element_count(from.shape);
  if (count > 0) std::memcpy(to.data, from.data, static_cast<size_t>(row_bytes(from.dtype, count)));
}

// Integer overflow wraps, as in torch.
template <typename Number>
INGOT_INLINE Number sum_of(Number a, Number b) {
  if constexpr (std::is_floating_point_v<Number>) return a + b;
  return static_cast<Number>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b));
}
template <typename Number>
INGOT_INLINE Number product_of(Number a, Number b) {
  if constexpr (std::is_floating_point_v<Number>) return a * b;
  return static_cast<Number>(static_cast<uint64_t>(a) * static_cast<uint64_t>(b));
}

template <typename Target, typename Stored, typename Combine>
INGOT_INLINE void combine_plain(Target* __restrict target, const Stored* __restrict values, int64_t length,
                                const Combine& combine) {
  constexpr int64_t kBlock = 8;  // of a known size, which compilers vectorize
  int64_t i = 0;
  for (; i + kBlock <= length; i += kBlock) {
    for (int64_t k = 0; k < kBlock; ++k) combine(target[i + k], values[i + k]);
  }
  for (; i < length; ++i) combine(target[i], values[i]);
}

// A row of the result, element by element with one of the source: by registers that hold 8 floats where there
// are. Why not on Windows: fourier_block.cpp.
#if defined(INGOT_TARGET) && !defined(_WIN32)
template <typename Target, typename Stored, typename Combine>
INGOT_TARGET("avx2")
void combine_wide(Target* target, const Stored* values, int64_t length, const Combine& combine) {
  combine_plain(target, values, length, combine);
}
template <typename Target, typename Stored, typename Combine>
void combine_row(Target* target, const Stored* values, int64_t length, const Combine& combine) {
  if constexpr (std::is_floating_point_v<Target>) {
    static const bool is_wide = __builtin_cpu_supports("avx2") != 0;
    if (is_wide) return combine_wide(target, values, length, combine);
  }
  combine_plain(target, values, length, combine);
}
#else
template <typename Target, typename Stored, typename Combine>
void combine_row(Target* target, const Stored* values, int64_t length, const Combine& combine) {
  combine_plain(target, values, length, combine);
}
#endif

// Negative indices are beyond any extent.
template <typename Index>
INGOT_INLINE bool is_inside(Index index, int64_t extent) {
  return static_cast<uint64_t>(int64_t{index}) < static_cast<uint64_t>(extent);
}

// Indices along the axis are checked where they are used: they are read once where combine_all leaves it to
// this.
template <typename Index, typename Target, typename Stored, typename Combine>
void combine_run_by(const Run& run, const Combine& combine) {
  const auto* const first = reinterpret_cast<const Index*>(run.call.inputs[1].data);
  const auto* indices = first + run.index;
  auto* target = reinterpret_cast<Target*>(run.target);
  const auto* values = reinterpret_cast<const Stored*>(run.values);
  const int64_t length = run.length, step = run.step, apart = run.apart, index_step = run.index_step;
  const int64_t extent = extent_of(run.call);
  for (int64_t row = 0; row < run.rows; ++row) {
    if (run.is_along_axis) {
      for (int64_t i = 0; i < length; ++i) {
        if (!is_inside(indices[i], extent)) [[unlikely]]
          checked_index(run.call.inputs[1], indices + i - first, extent);  // throws
        combine(target[int64_t{indices[i]} * step], values[i]);
      }
    } else if (index_step == 0 && apart == 1) {
      combine_row(target + int64_t{indices[0]} * step, values, length, combine);
    } else {
      for (int64_t i = 0; i < length; ++i)
        combine(target[int64_t{indices[i * index_step]} * step + i * apart], values[i]);
    }
    indices += run.index_row, target += run.target_row, values += run.values_row;
  }
}
template <typename Target, typename Stored, typename Combine>
void combine_run(const Run& run) {
  const auto& combine = *static_cast<const Combine*>(run.combine);
  run.call.inputs[1].dtype == DType::kI32 ? combine_run_by<int32_t, Target, Stored>(run, combine)
                                          : combine_run_by<int64_t, Target, Stored>(run, combine);
}

// Combines the elements of the source with those of `result`, which has the shape of the output.
template <typename Stored, typename Target, typename Combine>
void combine_rows(const RoutineCall& call, Target* result, const Combine& combine) {
  combine_all(call, {reinterpret_cast<std::byte*>(result), sizeof(Target), sizeof(Stored), &combine,
                     combine_run<Target, Stored, Combine>});
}

struct Reduction {
  std::string_view name;
  bool includes_self;
};

// What a reduction of no elements is.
template <typename Stored>
Stored neutral(std::string_view reduction) {
  using Limits = std::numeric_limits<Stored>;
  if (reduction == "amax") return Limits::has_infinity ? -Limits::infinity() : Limits::lowest();
  if (reduction == "amin") return Limits::has_infinity ? Limits::infinity() : Limits::max();
  return reduction == "prod" ? Stored{1} : Stored{0};
}

template <typename Stored>
Stored mean_of(Stored sum, int64_t count) {
  if constexpr (std::is_floating_point_v<Stored>)
    return static_cast<Stored>(sum / static_cast<double>(count));
  const auto wide = static_cast<int64_t>(sum);  // rounded down
  return static_cast<Stored>(wide / count - (wide % count != 0 && wide < 0 ? 1 : 0));
}

// The type whose sums and products have the same bits: of integers the signed one.
template <typename Stored>
struct SameBits {
  using Type = Stored;
};
template <std::integral Stored>
struct SameBits<Stored> {
  using Type = std::make_signed_t<Stored>;
};

// Sums in `result` become means of as many elements as there were.
template <typename Stored>
void divide_by_counts(const RoutineCall& call, const Reduction& reduction, Stored* result) {
  const WorkingItems<int64_t> counts(call, static_cast<size_t>(element_count(call.outputs[0].shape)));
  std::ranges::fill(counts.items(), reduction.includes_self ? 1 : 0);
  using Bits = SameBits<Stored>::Type;
  combine_rows<Bits>(call, counts.items().data(),
                     [](int64_t& a, Bits) __attribute__((always_inline)) { ++a; });
  for (const int64_t count : counts.items()) {
    if (count > 1) *result = mean_of(*result, count);
    ++result;
  }
}

// NaN propagates.
template <typename Stored>
void reduce_elements(const RoutineCall& call, const Reduction& reduction) {
  using Bits = SameBits<Stored>::Type;
  auto* result = reinterpret_cast<Stored*>(call.outputs[0].data);
  auto* bits = reinterpret_cast<Bits*>(call.outputs[0].data);
  const auto run = [&](const auto& combine) { combine_rows<Stored>(call, result, combine); };
  if (!reduction.includes_self) {
    const auto first = static_cast<Bits>(neutral<Stored>(reduction.name));
    combine_rows<Bits>(call, bits, [first](Bits& a, Bits) __attribute__((always_inline)) { a = first; });
  }
  if (reduction.name == "prod")
    return combine_rows<Bits>(call, bits,
                              [](Bits& a, Bits b) __attribute__((always_inline)) { a = product_of(a, b); });
  if (reduction.name == "amax")
    return run([](Stored& a, Stored b)
                   __attribute__((always_inline)) { a = a < b || b != b ? (a != a ? a : b) : a; });
  if (reduction.name == "amin")
    return run([](Stored& a, Stored b)
                   __attribute__((always_inline)) { a = b < a || b != b ? (a != a ? a : b) : a; });
  combine_rows<Bits>(call, bits, [](Bits& a, Bits b) __attribute__((always_inline)) { a = sum_of(a, b); });
  if (reduction.name == "mean") divide_by_counts(call, reduction, result);
}

void convert(const TensorView& from, const TensorView& to) {
  std::vector<int64_t> at(from.shape.size(), 0);
  for (int64_t count = element_count(from.shape); count-- > 0; step_index(at, from.shape))
    write_double(to, at, read_double(from, at));
}
void widen_all(const TensorView& from, const TensorView& to) {
  auto* floats = reinterpret_cast<float*>(to.data);
  const int64_t count = element_count(from.shape);
  if (from.dtype == DType::kF16) return widen_halves(reinterpret_cast<const Half*>(from.data), count, floats);
  if (from.dtype != DType::kBF16) return convert(from, to);
  combine_row(floats, reinterpret_cast<const BFloat16*>(from.data), count,
              [](float& a, BFloat16 b) __attribute__((always_inline)) { a = widened(b); });
}

void narrow_all(const TensorView& from, const TensorView& to) {
  const auto* floats = reinterpret_cast<const float*>(from.data);
  const int64_t count = element_count(from.shape);
  if (to.dtype == DType::kF16) return narrow_halves(floats, count, reinterpret_cast<Half*>(to.data));
  if (to.dtype != DType::kBF16) return convert(from, to);
  combine_row(reinterpret_cast<BFloat16*>(to.data), floats, count,
              [](BFloat16& a, float b) __attribute__((always_inline)) { a = narrowed<BFloat16>(b); });
}

// Calls `run` with floats in place of narrower floating-point elements, so that results are rounded once, as
// torch's are. False if elements are not such.
template <typename Run>
bool runs_in_floats(const RoutineCall& call, const Run& run) {
  const DType dtype = call.outputs[0].dtype;
  if (!is_floating(dtype) || bit_width(dtype) >= 32) return false;
  const auto room = [](const TensorView& view) {
    return (static_cast<size_t>(element_count(view.shape)) + 1) / 2;
  };
  const TensorView &x = call.inputs[0], &source = call.inputs[2], &result = call.outputs[0];
  const auto counts = static_cast<size_t>(element_count(result.shape));  // of divide_by_counts
  const WorkingItems<int64_t> memory(call, room(x) + room(source) + room(result) + counts);
  std::span<int64_t> left = memory.items();
  const auto floats_of = [&](const TensorView& view) {
    auto* data = reinterpret_cast<std::byte*>(left.data());
    left = left.subspan(room(view));
    return TensorView{data, DType::kF32, view.shape, row_major_strides(view.shape)};
  };
  const TensorView inputs[] = {floats_of(x), call.inputs[1], floats_of(source)},
                   outputs[] = {floats_of(result)};
  widen_all(x, inputs[0]);
  widen_all(source, inputs[2]);
  const WorkingMemory rest{[](void* data, size_t) { return static_cast<std::byte*>(data); }, left.data()};
  run({inputs, outputs, call.attributes, call.pool, &rest});
  narrow_all(outputs[0], result);
  return true;
}

void reduce(const RoutineCall& call, const Reduction& reduction) {
  if (runs_in_floats(call, [&](const RoutineCall& floats) { reduce(floats, reduction); })) return;
  copy_all(call.inputs[0], call.outputs[0]);
  switch (call.outputs[0].dtype) {
    case DType::kF32:
      return reduce_elements<float>(call, reduction);
    case DType::kF64:
      return reduce_elements<double>(call, reduction);
    case DType::kI64:
      return reduce_elements<int64_t>(call, reduction);
    case DType::kI32:
      return reduce_elements<int32_t>(call, reduction);
    case DType::kI16:
      return reduce_elements<int16_t>(call, reduction);
    case DType::kI8:
      return reduce_elements<int8_t>(call, reduction);
    case DType::kU8:
      return reduce_elements<uint8_t>(call, reduction);
    case DType::kU16:
      return reduce_elements<uint16_t>(call, reduction);
    case DType::kU32:
      return reduce_elements<uint32_t>(call, reduction);
    case DType::kU64:
      return reduce_elements<uint64_t>(call, reduction);
    default:
      return require_fit(false, "scatter");
  }
}

}  // namespace

void scatter_add(const RoutineCall& call) {
  check_tensors(call, "scatter_add");
  reduce(call, {"sum", true});
}

void scatter_reduce(const RoutineCall& call) {
  check_tensors(call, "scatter_reduce");
  reduce(call, {attribute<std::string>(call, "reduce"), attribute<bool>(call, "include_self")});
}

}  // namespace ingot::core::routines
