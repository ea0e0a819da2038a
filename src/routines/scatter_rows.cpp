// SPDX-License-Identifier: Apache-2.0
#include "routines/scatter_rows.h"

#include <algorithm>
#include <numeric>

#include "routines/routines.h"
#include "support/error.h"
#include "support/target_attribute.h"
#include "support/thread_pool.h"

namespace ingot::core::routines {
namespace {

// Strides for reading a dense tensor as `shape`: 0 for broadcast dims.
std::vector<int64_t> broadcast_strides(std::span<const int64_t> own, std::span<const int64_t> shape) {
  std::vector<int64_t> strides(own.size());
  int64_t stride = 1;
  for (size_t i = own.size(); i-- > 0; stride *= own[i]) strides[i] = own[i] == shape[i] ? stride : 0;
  return strides;
}

// Rows of the source's last dim. Dims of size 1, but for the axis, are left out.
struct Rows {
  std::vector<int64_t> shape;         // of the source
  std::vector<int64_t> to, at, from;  // strides of the result, the indices and the source
  size_t axis = 0, split = 0;  // `split`: a dim whose indices are independent; the axis if there is none

  explicit Rows(const RoutineCall& call) {
    const std::vector<int64_t>&result = call.outputs[0].shape, &source = call.inputs[2].shape;
    const auto strides = broadcast_strides(result, result),
               index_strides = broadcast_strides(call.inputs[1].shape, source),
               source_strides = broadcast_strides(source, source);
    const auto given = static_cast<size_t>(attribute<int64_t>(call, "axis"));
    for (size_t i = 0; i < source.size(); ++i) {
      if (i == given) axis = shape.size();
      if (i != given && source[i] == 1) continue;
      shape.push_back(source[i]);
      to.push_back(strides[i]);
      at.push_back(index_strides[i]);
      from.push_back(source_strides[i]);
    }
    split = axis;
    for (size_t i = 0; i < shape.size(); ++i) {
      if (i != axis && (split == axis || shape[i] > shape[split])) split = i;
    }
  }
};

// Combines indices [begin, end) of the dim `rows.split`, element by element in the source's order.
void combine_part(const RoutineCall& call, const Rows& rows, const Combination& how, int64_t begin,
                  int64_t end) {
  const size_t last = rows.shape.size() - 1;
  std::vector<int64_t> counts = rows.shape, place(rows.shape.size(), 0), to = rows.to;
  counts[rows.split] = end - begin;
  to[rows.axis] = 0;  // indices lead along it
  const auto start_of = [&](const std::vector<int64_t>& strides) {
    const int64_t start = begin * strides[rows.split];
    return std::inner_product(place.begin(), place.end(), strides.begin(), start);
  };
  const auto before_last = [&](const std::vector<int64_t>& of_dims) {
    return last > 0 ? of_dims[last - 1] : 1;
  };
  const size_t outer = last > 0 ? last - 1 : 0;
  const int64_t all = element_count(counts), together = counts[last] * before_last(counts);
  for (int64_t done = 0; done < all; done += together, step_index(place, {counts.data(), outer})) {
    how.each({before_last(counts), counts[last], start_of(rows.at), before_last(rows.at), rows.at[last],
              how.result + start_of(to) * how.target_bytes, before_last(to), rows.to[rows.axis],
              rows.to[last], call.inputs[2].data + start_of(rows.from) * how.value_bytes,
              before_last(rows.from), rows.axis == last, call, how.combine});
  }
}

// Its sign is set for negative indices, and for those beyond the last.
template <typename Index>
INGOT_INLINE uint64_t beyond(Index index, uint64_t last) {
  const auto number = static_cast<uint64_t>(int64_t{index});
  return number | (last - number);
}

template <typename Index>
void check_indices(const RoutineCall& call) {
  constexpr int64_t kBlock = 8;  // of a known size, which compilers vectorize
  const auto* indices = reinterpret_cast<const Index*>(call.inputs[1].data);
  const int64_t count = element_count(call.inputs[1].shape), extent = extent_of(call);
  const auto last = static_cast<uint64_t>(extent) - 1;
  uint64_t outside = 0, of_block[kBlock] = {};
  int64_t i = 0;
  for (; i + kBlock <= count; i += kBlock) {
    for (int64_t k = 0; k < kBlock; ++k) of_block[k] |= beyond(indices[i + k], last);
  }
  for (; i < count; ++i) outside |= beyond(indices[i], last);
  for (const uint64_t one : of_block) outside |= one;
  if (static_cast<int64_t>(outside) >= 0) return;
  for (i = 0; i < count; ++i) checked_index(call.inputs[1], i, extent);  // throws for the first
}

}  // namespace

int64_t extent_of(const RoutineCall& call) {
  return call.outputs[0].shape[static_cast<size_t>(attribute<int64_t>(call, "axis"))];
}

int64_t checked_index(const TensorView& indices, int64_t at, int64_t extent) {
  const int64_t index = indices.dtype == DType::kI32 ? reinterpret_cast<const int32_t*>(indices.data)[at]
                                                     : reinterpret_cast<const int64_t*>(indices.data)[at];
  if (index < 0 || index >= extent)
    throw UserError("INGOT-U333", "scatter: index " + std::to_string(index) + " is outside of a dim of " +
                                      std::to_string(extent));
  return index;
}

int64_t element_count(std::span<const int64_t> shape) {
  int64_t count = 1;
  for (const int64_t size : shape) count *= size;
  return count;
}

void step_index(std::vector<int64_t>& index, std::span<const int64_t> shape) {
  for (size_t i = shape.size(); i-- > 0;) {
    if (++index[i] < shape[i]) return;
    index[i] = 0;
  }
}

void combine_all(const RoutineCall& call, const Combination& how) {
  const Rows rows(call);
  constexpr int64_t kGrainElements = 4096;
  const int64_t count = element_count(rows.shape);
  if (count == 0) return;
  auto run = [&](int64_t begin, int64_t end, int) { combine_part(call, rows, how, begin, end); };
  const int64_t parts = rows.shape[rows.split], part = count / parts;
  const bool is_alone = call.pool == nullptr || call.pool->threads() == 1 || rows.split == rows.axis ||
                        count < 2 * kGrainElements;
  if (!is_alone || rows.axis + 1 < rows.shape.size())  // no thread of a pool may throw
    call.inputs[1].dtype == DType::kI32 ? check_indices<int32_t>(call) : check_indices<int64_t>(call);
  if (is_alone) return run(0, parts, 0);
  call.pool->parallel_for(parts, std::max<int64_t>(1, kGrainElements / part), run);
}

}  // namespace ingot::core::routines
