// SPDX-License-Identifier: Apache-2.0
// What a library can do behind the sums of a contraction.
#pragma once

#include <optional>

#include "backends/cuda/images/library_call.h"
#include "ir/graph.h"
#include "loops/kernel.h"

namespace ingot::core::cuda {

constexpr int64_t kNoBuffer = -1;

//   result = activation(sums + bias + added)
// as buffers of the epilogue; kNoBuffer: nothing.
struct LibraryEpilogue {
  int64_t bias = kNoBuffer, added = kNoBuffer, result = kNoBuffer;
  LibraryActivation activation = LibraryActivation::kNone;
  double bound = 0;  // of kBoundedRelu
};

// Nothing if the epilogue of `contraction` is more than that, or a tensor of the result's size is not stored
// in the order of `layout`. Dim `column_dim` of the result has a bias per index. Roundings between the
// operations are left out: libraries round once.
std::optional<LibraryEpilogue> read_library_epilogue(const Node& contraction, size_t column_dim,
                                                     const Layout& layout, const loops::Kernel& epilogue);

}  // namespace ingot::core::cuda
