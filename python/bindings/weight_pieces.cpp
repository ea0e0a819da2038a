// SPDX-License-Identifier: Apache-2.0
#include "weight_pieces.h"

#include <algorithm>
#include <bit>
#include <cstring>

namespace ingot::python {
namespace {

bool take_piece(const std::byte* now, std::byte* seen, size_t width) {
  const bool differs = std::memcmp(now, seen, width) != 0;
  std::memcpy(seen, now, width);
  return differs;
}

}  // namespace

PieceLayout PieceLayout::of(size_t bytes, size_t most) {
  if (bytes == 0) return {};
  constexpr size_t kPair = 2 * WeightPieces::kMostBytes;
  const size_t width = std::min(std::bit_floor(bytes), WeightPieces::kMostBytes);
  const size_t pairs = std::min((bytes + kPair - 1) / kPair, most), gaps = 2 * pairs - 1;
  const size_t last = bytes - width;
  // Rounded up, so that no gap between pieces is larger: at most 16 bytes if the pairs can cover the weight.
  return {.pairs = static_cast<uint16_t>(pairs),
          .width = static_cast<uint16_t>(width),
          .distance = static_cast<ptrdiff_t>((last + gaps - 1) / gaps),
          .last = last};
}

bool take_pieces(const PieceLayout& layout, const std::byte* memory, std::span<WeightPieces> seen) {
  bool differs = false;
  for (ptrdiff_t i = 0; i < layout.pairs; ++i) {
    const std::byte *const low = memory + i * layout.distance, *const high =
                                                                   memory + layout.last - i * layout.distance;
    differs |= take_piece(low, seen[i].low, layout.width);
    differs |= take_piece(high, seen[i].high, layout.width);
  }
  return differs;
}

}  // namespace ingot::python
