// SPDX-License-Identifier: Apache-2.0
// The bytes of a weight that are compared at each call. Those of a small weight are all that it has.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace ingot::python {

// Two pieces of a weight's memory, at the same distance from its two ends.
struct WeightPieces {
  static constexpr size_t kMostBytes = 16;
  std::byte low[kMostBytes], high[kMostBytes];
};

// Pairs of pieces at equal distances, the outermost ones first.
struct PieceLayout {
  uint16_t pairs = 0;  // 0: there is no memory to compare
  uint16_t width = 0;  // of a piece, in bytes: 16, or a smaller power of two in a smaller weight
  ptrdiff_t distance = 0;
  size_t last = 0;  // where the last piece begins

  // `most`: pairs, at least one.
  static PieceLayout of(size_t bytes, size_t most);
};

// Copies the pieces of `memory` to `seen`; returns whether any differs from what was there.
bool take_pieces(const PieceLayout& layout, const std::byte* memory, std::span<WeightPieces> seen);

}  // namespace ingot::python
