// SPDX-License-Identifier: Apache-2.0
// Combines source elements with a copy of x sequentially: several may have the same index.
#include <algorithm>
#include <concepts>
#include <cstring>
#include <numeric>
#include <vector>

#include "routines/routines.h"
#include "support/error.h"
#include "support/target_attribute.h"
#include "support/thread_pool.h"

namespace ingot::core::routines {
namespace {

int64_t checked_index(const TensorView& indices, int64_t at, int64_t extent) {
  const int64_t index = indices.dtype == DType::kI32 ? reinterpret_cast<const int32_t*>(indices.data)[at]
                                                     : reinterpret_cast<const int64_t*>(indices.data)[at];
  if (index < 0 || index >= extent)
    throw UserError("INGOT-U333", "scatter: index " + std::to_string(index) + " is outside of a dim of " +
                                      std::to_string(extent));
  return index;
}

// Advances an index through a shape in row-major order.
void step_index(std::vector<int64_t>& index, std::span<const int64_t> shape) {
  for (size_t i = shape.size(); i-- > 0;) {
    if (++index[i] < shape[i]) return;
    index[i] = 0;
  }
}

int64_t element_count(std::span<const int64_t> shape) {
  int64_t count = 1;
  for (const int64_t size : shape) count *= size;
  return count;
}

// Strides for reading a dense tensor as `shape`: 0 for broadcast dims.
std::vector<int64_t> broadcast_strides(std::span<const int64_t> own, std::span<const int64_t> shape) {
  std::vector<int64_t> strides(own.size());
  int64_t stride = 1;
  for (size_t i = own.size(); i-- > 0; stride *= own[i]) strides[i] = own[i] == shape[i] ? stride : 0;
  return strides;
}

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

// Calls visit(offset in x, offset in the source) for each element of the source.
template <typename Visit>
void for_each_index(const RoutineCall& call, const Visit& visit) {
  const auto axis = static_cast<size_t>(attribute<int64_t>(call, "axis"));
  const TensorView &x = call.inputs[0], &indices = call.inputs[1], &source = call.inputs[2];
  const std::vector<int64_t> strides = broadcast_strides(indices.shape, source.shape);
  const int64_t count = element_count(source.shape);
  std::vector<int64_t> from(x.shape.size(), 0);
  for (int64_t i = 0; i < count; ++i, step_index(from, source.shape)) {
    std::vector<int64_t> to = from;
    to[axis] = checked_index(
        indices, std::inner_product(from.begin(), from.end(), strides.begin(), int64_t{0}), x.shape[axis]);
    visit(to, from);
  }
}

// Elements of one category, read and written through its widest type.
struct Reals {
  using Number = double;
  static double read(const TensorView& view, std::span<const int64_t> at) { return read_double(view, at); }
  static void write(const TensorView& view, std::span<const int64_t> at, double value) {
    write_double(view, at, value);
  }
  static double mean(double sum, int64_t count) { return sum / static_cast<double>(count); }
};
struct Integers {
  using Number = int64_t;
  static int64_t read(const TensorView& view, std::span<const int64_t> at) { return read_integer(view, at); }
  static void write(const TensorView& view, std::span<const int64_t> at, int64_t value) {
    write_integer(view, at, value);
  }
  static int64_t mean(int64_t sum, int64_t count) {  // rounded down
    return sum / count - (sum % count != 0 && sum < 0 ? 1 : 0);
  }
};

// Integer overflow wraps, as in torch.
template <std::floating_point Real>
INGOT_INLINE Real sum_of(Real a, Real b) {
  return a + b;
}
template <std::floating_point Real>
INGOT_INLINE Real product_of(Real a, Real b) {
  return a * b;
}
INGOT_INLINE int64_t sum_of(int64_t a, int64_t b) {
  return static_cast<int64_t>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b));
}
INGOT_INLINE int64_t product_of(int64_t a, int64_t b) {
  return static_cast<int64_t>(static_cast<uint64_t>(a) * static_cast<uint64_t>(b));
}

// Propagates NaN.
template <typename Number>
Number combine(std::string_view reduce, Number a, Number b) {
  if (reduce == "sum" || reduce == "mean") return sum_of(a, b);
  if (reduce == "prod") return product_of(a, b);
  if (a != a || b != b) return a != a ? a : b;
  return (reduce == "amax") == (a < b) ? b : a;
}

template <typename Kind>
void reduce_into(const RoutineCall& call) {
  const std::string& reduce = attribute<std::string>(call, "reduce");
  const TensorView &source = call.inputs[2], &result = call.outputs[0];
  const int64_t included = attribute<bool>(call, "include_self") ? 1 : 0;
  const WorkingItems<int64_t> counts(call, static_cast<size_t>(element_count(result.shape)));
  const std::span<int64_t> met = counts.items();
  std::ranges::fill(met, included);
  const auto place_of = [&](std::span<const int64_t> at) {
    int64_t place = 0;
    for (size_t i = 0; i < at.size(); ++i) place = place * result.shape[i] + at[i];
    return static_cast<size_t>(place);
  };
  for_each_index(call, [&](const std::vector<int64_t>& to, const std::vector<int64_t>& from) {
    const auto value = Kind::read(source, from);
    const bool is_first = met[place_of(to)]++ == 0;
    Kind::write(result, to, is_first ? value : combine(reduce, Kind::read(result, to), value));
  });
  if (reduce != "mean") return;
  std::vector<int64_t> at(result.shape.size(), 0);
  for (const int64_t count : met) {
    if (count > 1) Kind::write(result, at, Kind::mean(Kind::read(result, at), count));
    step_index(at, result.shape);
  }
}

// Rows of the source's last dim, for element types that the processor adds directly.
struct Rows {
  std::vector<int64_t> shape;         // of the source
  std::vector<int64_t> to, at, from;  // strides of the result, the indices and the source
  size_t axis, split;  // `split`: a dim whose indices are independent; the axis if there is none

  explicit Rows(const RoutineCall& call)
      : shape(call.inputs[2].shape),
        to(broadcast_strides(call.outputs[0].shape, call.outputs[0].shape)),
        at(broadcast_strides(call.inputs[1].shape, shape)),
        from(broadcast_strides(shape, shape)),
        axis(static_cast<size_t>(attribute<int64_t>(call, "axis"))),
        split(axis) {
    for (size_t i = 0; i < shape.size(); ++i) {
      if (i != axis && (split == axis || shape[i] > shape[split])) split = i;
    }
  }
};

template <typename Stored, typename Combine>
INGOT_INLINE void combine_plain(Stored* __restrict target, const Stored* __restrict values, int64_t length,
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
template <typename Stored, typename Combine>
INGOT_TARGET("avx2")
void combine_wide(Stored* target, const Stored* values, int64_t length, const Combine& combine) {
  combine_plain(target, values, length, combine);
}
template <typename Stored, typename Combine>
void combine_row(Stored* target, const Stored* values, int64_t length, const Combine& combine) {
  static const bool is_wide = __builtin_cpu_supports("avx2") != 0;
  is_wide ? combine_wide(target, values, length, combine) : combine_plain(target, values, length, combine);
}
#else
template <typename Stored, typename Combine>
void combine_row(Stored* target, const Stored* values, int64_t length, const Combine& combine) {
  combine_plain(target, values, length, combine);
}
#endif

// Combines indices [begin, end) of the dim `rows.split`, element by element in the source's order.
template <typename Stored, typename Index, typename Combine>
void combine_part(const RoutineCall& call, const Rows& rows, int64_t begin, int64_t end,
                  const Combine& combine) {
  const size_t last = rows.shape.size() - 1;
  const auto* indices = reinterpret_cast<const Index*>(call.inputs[1].data);
  const auto* source = reinterpret_cast<const Stored*>(call.inputs[2].data);
  auto* result = reinterpret_cast<Stored*>(call.outputs[0].data);
  std::vector<int64_t> counts = rows.shape, place(last, 0);
  counts[rows.split] = end - begin;
  const int64_t step = rows.to[rows.axis], length = counts[last];
  const int64_t runs = length == 0 ? 0 : element_count(counts) / length;
  const auto start_of = [&](const std::vector<int64_t>& strides) {
    const int64_t start = begin * strides[rows.split];
    return std::inner_product(place.begin(), place.end(), strides.begin(), start);
  };
  for (int64_t run = 0; run < runs; ++run, step_index(place, {counts.data(), last})) {
    const Index* index = indices + start_of(rows.at);
    const Stored* values = source + start_of(rows.from);
    const int64_t along_axis = rows.axis < last ? place[rows.axis] : 0;
    Stored* target = result + start_of(rows.to) - (along_axis + (rows.split == rows.axis ? begin : 0)) * step;
    if (rows.axis == last) {
      for (int64_t i = 0; i < length; ++i) combine(target[index[i]], values[i]);
    } else if (rows.at[last] == 0) {
      combine_row(target + int64_t{index[0]} * step, values, length, combine);
    } else {
      for (int64_t i = 0; i < length; ++i) combine(target[int64_t{index[i]} * step + i], values[i]);
    }
  }
}

template <typename Index>
void check_indices(const RoutineCall& call, int64_t extent) {
  const auto* indices = reinterpret_cast<const Index*>(call.inputs[1].data);
  const int64_t count = element_count(call.inputs[1].shape);
  const bool inside =
      std::all_of(indices, indices + count, [&](Index index) { return index >= 0 && index < extent; });
  for (int64_t i = 0; !inside && i < count; ++i)
    checked_index(call.inputs[1], i, extent);  // throws for the first
}

template <typename Stored, typename Index, typename Combine>
void combine_rows(const RoutineCall& call, const Combine& combine) {
  constexpr int64_t kGrainElements = 4096;
  const Rows rows(call);
  const int64_t count = element_count(rows.shape);
  if (count == 0) return;
  check_indices<Index>(call, call.inputs[0].shape[rows.axis]);
  auto run = [&](int64_t begin, int64_t end, int) {
    combine_part<Stored, Index>(call, rows, begin, end, combine);
  };
  const int64_t parts = rows.shape[rows.split], part = count / parts;
  if (call.pool == nullptr || rows.split == rows.axis || count < 2 * kGrainElements) return run(0, parts, 0);
  call.pool->parallel_for(parts, std::max<int64_t>(1, kGrainElements / part), run);
}

// False for dtypes without such rows.
template <typename Combine>
bool combines_rows(const RoutineCall& call, const Combine& combine) {
  const auto run = [&]<typename Stored>(Stored) {
    call.inputs[1].dtype == DType::kI32 ? combine_rows<Stored, int32_t>(call, combine)
                                        : combine_rows<Stored, int64_t>(call, combine);
    return true;
  };
  switch (call.outputs[0].dtype) {
    case DType::kF32:
      return run(float{});
    case DType::kF64:
      return run(double{});
    case DType::kI64:
      return run(int64_t{});
    default:
      return false;
  }
}

constexpr auto kAdd = [](auto& a, auto b) __attribute__((always_inline)) { a = sum_of(a, b); };

bool reduces_rows(const RoutineCall& call) {
  const std::string& reduce = attribute<std::string>(call, "reduce");
  if (!attribute<bool>(call, "include_self") || reduce == "mean") return false;
  if (reduce == "sum") return combines_rows(call, kAdd);
  if (reduce == "prod")
    return combines_rows(call, [](auto& a, auto b) __attribute__((always_inline)) { a = product_of(a, b); });
  if (reduce == "amax")
    return combines_rows(call, [](auto& a, auto b) __attribute__((always_inline)) {
      a = a < b || b != b ? (a != a ? a : b) : a;
    });
  return combines_rows(call, [](auto& a, auto b) __attribute__((always_inline)) {
    a = b < a || b != b ? (a != a ? a : b) : a;
  });
}

// Calls `run` with floats in place of narrower floating-point elements, so that results are rounded once, as
// torch's are. False if elements are not such.
template <typename Run>
bool runs_in_floats(const RoutineCall& call, const Run& run) {
  const DType dtype = call.outputs[0].dtype;
  if (!is_floating(dtype) || bit_width(dtype) >= 32) return false;
  const auto convert = [](const TensorView& from, const TensorView& to) {
    std::vector<int64_t> at(from.shape.size(), 0);
    for (int64_t count = element_count(from.shape); count-- > 0; step_index(at, from.shape))
      write_double(to, at, read_double(from, at));
  };
  const auto room = [](const TensorView& view) {
    return (static_cast<size_t>(element_count(view.shape)) + 1) / 2;
  };
  const TensorView &x = call.inputs[0], &source = call.inputs[2], &result = call.outputs[0];
  const auto counts = static_cast<size_t>(element_count(result.shape));  // of reduce_into
  const WorkingItems<int64_t> memory(call, room(x) + room(source) + room(result) + counts);
  std::span<int64_t> left = memory.items();
  const auto floats_of = [&](const TensorView& view) {
    auto* data = reinterpret_cast<std::byte*>(left.data());
    left = left.subspan(room(view));
    return TensorView{data, DType::kF32, view.shape, row_major_strides(view.shape)};
  };
  const TensorView inputs[] = {floats_of(x), call.inputs[1], floats_of(source)},
                   outputs[] = {floats_of(result)};
  convert(x, inputs[0]);
  convert(source, inputs[2]);
  const WorkingMemory rest{[](void* data, size_t) { return static_cast<std::byte*>(data); }, left.data()};
  run({inputs, outputs, call.attributes, call.pool, &rest});
  convert(outputs[0], result);
  return true;
}

}  // namespace

void scatter_add(const RoutineCall& call) {
  check_tensors(call, "scatter_add");
  if (runs_in_floats(call, scatter_add)) return;
  const TensorView &source = call.inputs[2], &result = call.outputs[0];
  copy_all(call.inputs[0], result);
  if (combines_rows(call, kAdd)) return;
  for_each_index(call, [&](const std::vector<int64_t>& to, const std::vector<int64_t>& from) {
    write_integer(result, to, sum_of(read_integer(result, to), read_integer(source, from)));
  });
}

void scatter_reduce(const RoutineCall& call) {
  check_tensors(call, "scatter_reduce");
  if (runs_in_floats(call, scatter_reduce)) return;
  copy_all(call.inputs[0], call.outputs[0]);
  if (reduces_rows(call)) return;
  is_floating(call.outputs[0].dtype) ? reduce_into<Reals>(call) : reduce_into<Integers>(call);
}

}  // namespace ingot::core::routines
