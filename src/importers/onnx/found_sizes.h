// SPDX-License-Identifier: Apache-2.0
// Sizes that a run finds, of the model's graph alone: symbols belong to it.
#pragma once

#include "importers/onnx/call.h"

namespace ingot::core::onnx {

struct FoundSize {
  Value* count;  // i64[]
  Dim size;
};

// A computed number, from 0 to `most`, as a size: a new symbol named after `name`, or the number itself where
// the build knows it.
FoundSize found_size(Call& call, Value* number, const Dim& most, const char* name);

// The indices of the true elements of a bool mask, a row each: i64[count, rank].
Value* indices_of_true(Call& call, Value* mask);
// The same of a list: i64[count].
Value* positions_of_true(Call& call, Value* mask);

}  // namespace ingot::core::onnx
