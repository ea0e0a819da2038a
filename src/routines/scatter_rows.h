// SPDX-License-Identifier: Apache-2.0
// Visits the elements of a scatter's source by rows, with the elements of the result that indices lead to.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "routines/routine.h"

namespace ingot::core::routines {

// Rows of the source that are visited together, of elements next to each other.
struct Run {
  int64_t rows, length;
  int64_t index, index_row, index_step;  // positions of the first element's index, and of the next ones
  std::byte* target;                     // for index 0 and the first element
  int64_t target_row, step, apart;       // elements to the next row, to the next index, to the next element
  const std::byte* values;
  int64_t values_row;
  bool is_along_axis;
  const RoutineCall& call;
  const void* combine;
};

// How the elements of a scatter are combined, of any types: what visits them is compiled once.
struct Combination {
  std::byte* result;  // in the shape of the output
  int64_t target_bytes, value_bytes;
  const void* combine;
  void (*each)(const Run& run);
};

// Calls `how.each` for all elements of the source, those with the same index in the source's order. Indices
// are checked before the first call, but those along the last dim where one thread combines all.
void combine_all(const RoutineCall& call, const Combination& how);

// The size of the dim that indices lead along.
int64_t extent_of(const RoutineCall& call);
// UserError for an index that is outside.
int64_t checked_index(const TensorView& indices, int64_t at, int64_t extent);

int64_t element_count(std::span<const int64_t> shape);
// Advances an index through a shape in row-major order.
void step_index(std::vector<int64_t>& index, std::span<const int64_t> shape);

}  // namespace ingot::core::routines
