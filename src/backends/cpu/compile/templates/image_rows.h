// SPDX-License-Identifier: Apache-2.0
// Row pointers of a convolution: the image elements that contribute to a pixel of the result.
#pragma once

#include "backends/cpu/compile/templates/panel_kernel.h"
#include "ops/convolution.h"

namespace ingot::core::cpu {

// Spatial dims outermost first; the image is channels-last.
struct ImageGeometry {
  std::vector<Dim> input, output;  // spatial extents
  std::vector<int64_t> window, stride, padding, dilation;
  int64_t channels = 0;        // of the image
  int64_t group_channels = 0;  // of a group
  DType dtype = DType::kF32;   // of the image
  int64_t outside = 0;         // what pixels outside of it are; not 0 for bytes only
  // True: a segment is one row of the window, with all its columns and channels (for few channels). False:
  // one tap.
  bool whole_window_rows = false;

  bool is_padded() const;
  bool is_plain() const;  // rows are the image's pixels, in order
  int64_t segments() const;
  int64_t count() const;  // elements per segment
  int64_t extra_bytes(int tile_rows) const;
};

bool all_one(const std::vector<int64_t>& sizes);

ImageGeometry image_geometry(std::span<const TensorType> operands, const TensorType& result,
                             const ops::Convolution& attributes);

// For PanelProblem: fills the memory that replaces pixels outside of the image; fills the table of row
// pointers.
void begin_image_rows(const RowRequest& request, const ImageGeometry& geometry, int tile_rows);
void fill_image_rows(const RowRequest& request, const ImageGeometry& geometry, int tile_rows);

}  // namespace ingot::core::cpu
