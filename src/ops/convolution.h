// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>

#include "ir/attribute.h"

namespace ingot::core::ops {

// Operands: input [N, C, *spatial], weight [O, C/groups, *kernel], optional bias [O].
struct Convolution {
  std::vector<int64_t> stride, padding, dilation;  // one entry per spatial dim; padding on both sides
  int64_t groups = 1;
  static constexpr auto fields() {
    return std::tuple{Field{"stride", &Convolution::stride}, Field{"padding", &Convolution::padding},
                      Field{"dilation", &Convolution::dilation}, Field{"groups", &Convolution::groups}};
  }
};

// Operands: input [N, C, *spatial] of u8 or i8, weight [O, C/groups, *kernel] of i8; sums in i32.
struct IntegerConvolution {
  std::vector<int64_t> stride, padding, dilation;  // as in Convolution
  int64_t groups = 1;
  int64_t outside = 0;  // the number that elements of the padding have
  static constexpr auto fields() {
    return std::tuple{
        Field{"stride", &IntegerConvolution::stride}, Field{"padding", &IntegerConvolution::padding},
        Field{"dilation", &IntegerConvolution::dilation}, Field{"groups", &IntegerConvolution::groups},
        Field{"outside", &IntegerConvolution::outside}};
  }
  Convolution window() const { return {stride, padding, dilation, groups}; }
};

struct ConvolutionTranspose {
  std::vector<int64_t> stride, padding, output_padding, dilation;  // one entry per spatial dim
  int64_t groups = 1;
  static constexpr auto fields() {
    return std::tuple{
        Field{"stride", &ConvolutionTranspose::stride}, Field{"padding", &ConvolutionTranspose::padding},
        Field{"output_padding", &ConvolutionTranspose::output_padding},
        Field{"dilation", &ConvolutionTranspose::dilation}, Field{"groups", &ConvolutionTranspose::groups}};
  }
};

// Whether an attribute is this along each spatial dim.
inline bool all_are(const std::vector<int64_t>& sizes, int64_t value) {
  return std::ranges::all_of(sizes, [&](int64_t size) { return size == value; });
}

}  // namespace ingot::core::ops
