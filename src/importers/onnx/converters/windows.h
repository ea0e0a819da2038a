// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "importers/onnx/call.h"

namespace ingot::core::onnx {

// Attributes of sliding windows, one entry per spatial dim.
struct Windows {
  std::vector<int64_t> kernel, stride, dilation;
  std::vector<Dim> low, high;  // padding; not negative

  bool is_even() const;         // constant, and the same on both sides
  bool is_within_half() const;  // at most half of the kernel; of even ones
  std::vector<int64_t> even() const;
};

// `shape`: of the input [N, C, *spatial], which SAME_UPPER and SAME_LOWER depend on; empty: they pad nothing.
Windows windows_of(Call& call, const Shape& shape, std::vector<int64_t> kernel);
Value* padded(Graph& graph, Value* x, const Windows& windows, double value);

}  // namespace ingot::core::onnx
