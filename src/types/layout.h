// SPDX-License-Identifier: Apache-2.0
// A layout maps logical indices to storage. Ops and Loop IR use logical indices only.
//
// Storage is a dense array whose axes, from outermost to innermost, are `axes`. The index along an axis is
// (logical[dim] / divisor) % modulus, with modulus 0 meaning "no modulus": NHWC of NCHW is {0},{2},{3},{1};
// NCHW16c is {0},{1,16,0},{2},{3},{1,1,16}. A blocked dim is rounded up to whole blocks; the padding holds
// zeros. An empty list is row-major.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "types/dim.h"

namespace ingot::core {

struct LayoutAxis {
  int32_t dim;
  int64_t divisor = 1;
  int64_t modulus = 0;
  bool operator==(const LayoutAxis&) const = default;
};

struct Layout {
  std::vector<LayoutAxis> axes;

  bool is_row_major() const { return axes.empty(); }
  bool is_permutation() const;  // no blocking (row-major included)
  bool operator==(const Layout&) const = default;

  static Layout permutation(std::span<const int> order);  // {0, 2, 3, 1} is NHWC
  // Splits logical `dim` into an outer and an inner part of size `block`, the inner one innermost; the other
  // axes are in `order`.
  static Layout blocked(std::span<const int> order, int dim, int64_t block);
};

// Extent of each storage axis for a logical shape (row-major: the shape itself).
std::vector<Dim> storage_shape(const Layout& layout, std::span<const Dim> shape);
// Elements of storage, padding included.
Dim storage_elements(const Layout& layout, std::span<const Dim> shape);
// Storage offset in elements of a logical index.
Dim storage_offset(const Layout& layout, std::span<const Dim> shape, std::span<const Dim> index);

std::vector<int> channels_last(size_t rank);  // the order {0, 2, 3, 1} of images [N, C, H, W]

std::string to_string(const Layout& layout);  // "{0, 1/16, 2, 3, 1%16}"; "" for row-major
// The inverse; UserError if the text is malformed or an axis is out of range for `rank`.
Layout parse_layout(std::string_view text, size_t rank);

}  // namespace ingot::core
