// SPDX-License-Identifier: Apache-2.0
// The operator `fold`, and its attributes.
#pragma once

#include "ir/attribute.h"
#include "ir/op.h"

namespace ingot::core::ops {

// x is [N, groups * taps * C, *spatial], with the taps of the window in row-major order; padding is cropped
// from the result.
struct Fold {
  std::vector<int64_t> kernel, stride, padding;  // one entry per spatial dim
  std::vector<Dim> size;                         // of the result's spatial dims
  int64_t groups = 1;
  static constexpr auto fields() {
    return std::tuple{Field{"kernel", &Fold::kernel}, Field{"stride", &Fold::stride},
                      Field{"padding", &Fold::padding}, Field{"size", &Fold::size},
                      Field{"groups", &Fold::groups}};
  }
};

extern const Op fold;

// Whether windows lie side by side along spatial dim `i`, from the first to the last element: each is of one.
bool fills_result(const Fold& fold, const Shape& x, size_t i);

}  // namespace ingot::core::ops
