// SPDX-License-Identifier: Apache-2.0
// Adds source elements to a copy of x, one after another: several may meet in one place.
#include <cstring>
#include <vector>

#include "routines/routines.h"
#include "support/error.h"

namespace ingot::core::routines {
namespace {

int64_t checked_index(const TensorView& indices, int64_t at, int64_t extent) {
  const int64_t index = indices.dtype == DType::kI32 ? reinterpret_cast<const int32_t*>(indices.data)[at]
                                                     : reinterpret_cast<const int64_t*>(indices.data)[at];
  if (index < 0 || index >= extent)
    throw UserError("INGOT-U333", "scatter_add: index " + std::to_string(index) + " is outside of a dim of " +
                                      std::to_string(extent));
  return index;
}

// Steps an index through a shape in row-major order.
void step_index(std::vector<int64_t>& index, std::span<const int64_t> shape) {
  for (size_t i = shape.size(); i-- > 0;) {
    if (++index[i] < shape[i]) return;
    index[i] = 0;
  }
}

}  // namespace

void scatter_add(const RoutineCall& call) {
  const auto axis = static_cast<size_t>(integer_attribute(call, "axis"));
  const TensorView &x = call.inputs[0], &indices = call.inputs[1], &source = call.inputs[2],
                   &result = call.outputs[0];
  int64_t elements = 1, count = 1;
  for (const int64_t size : x.shape) elements *= size;
  for (const int64_t size : indices.shape) count *= size;
  if (elements > 0) std::memcpy(result.data, x.data, static_cast<size_t>(row_bytes(x.dtype, elements)));
  std::vector<int64_t> from(x.shape.size(), 0);
  for (int64_t i = 0; i < count; ++i, step_index(from, indices.shape)) {
    std::vector<int64_t> to = from;
    to[axis] = checked_index(indices, i, x.shape[axis]);
    if (is_floating(x.dtype)) {
      write_double(result, to, read_double(result, to) + read_double(source, from));
    } else {
      write_integer(result, to, read_integer(result, to) + read_integer(source, from));
    }
  }
}

}  // namespace ingot::core::routines
