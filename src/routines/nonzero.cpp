// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstring>
#include <span>
#include <vector>

#include "routines/routines.h"

namespace ingot::core::routines {
namespace {

bool is_index_scalar(const TensorView& view) { return view.shape.empty() && view.dtype == DType::kI64; }

// The row-major index after `index`.
void step(std::span<int64_t> index, std::span<const int64_t> shape) {
  for (size_t i = index.size(); i-- > 0;) {
    if (++index[i] < shape[i]) return;
    index[i] = 0;
  }
}

bool are_zero(const std::byte* eight) {
  uint64_t word;
  std::memcpy(&word, eight, sizeof(word));
  return word == 0;
}

// Writes the index of each true element of one line, whose other indices are `outer`; returns how many there
// are.
int64_t write_line(const std::byte* line, int64_t extent, std::span<const int64_t> outer, int64_t room,
                   int64_t* to) {
  constexpr int64_t kWord = 8;
  int64_t found = 0;
  for (int64_t i = 0; i < extent;) {
    if (i + kWord <= extent && are_zero(line + i)) {
      i += kWord;
      continue;
    }
    if (line[i] != std::byte{0}) {
      require_fit(found < room, "nonzero");
      to = std::ranges::copy(outer, to).out;
      *to++ = i;
      ++found;
    }
    ++i;
  }
  return found;
}

}  // namespace

void bind_size(const RoutineCall& call) {
  require_fit(call.inputs.size() == 1 && call.outputs.size() == 1 && is_index_scalar(call.inputs[0]) &&
                  is_index_scalar(call.outputs[0]),
              "bind_size");
  std::memcpy(call.outputs[0].data, call.inputs[0].data, sizeof(int64_t));
}

// The count only orders the steps: the result's size is what was bound, and has to be the number of true
// elements.
void nonzero(const RoutineCall& call) {
  const auto require = [](bool fits) { require_fit(fits, "nonzero"); };
  require(call.inputs.size() == 2 && call.outputs.size() == 1);
  const TensorView &mask = call.inputs[0], &indices = call.outputs[0];
  const size_t rank = mask.shape.size();
  require(mask.dtype == DType::kBool && indices.dtype == DType::kI64 && indices.shape.size() == 2);
  require(indices.shape[1] == static_cast<int64_t>(rank));
  const int64_t count = indices.shape[0];
  auto* to = reinterpret_cast<int64_t*>(indices.data);
  if (rank == 0) return require(count == (mask.data[0] != std::byte{0} ? 1 : 0));
  const int64_t extent = mask.shape.back();
  const std::span outer_shape(mask.shape.data(), rank - 1);
  int64_t lines = 1, found = 0;
  for (const int64_t size : outer_shape) lines *= size;
  std::vector<int64_t> outer(rank - 1, 0);
  for (int64_t line = 0; line < lines; ++line, step(outer, outer_shape)) {
    const int64_t here = write_line(mask.data + line * extent, extent, outer, count - found, to);
    found += here;
    to += here * static_cast<int64_t>(rank);
  }
  require(found == count);
}

}  // namespace ingot::core::routines
