// SPDX-License-Identifier: Apache-2.0
#include "weight_glance.h"

#include <algorithm>
#include <cstring>

#ifdef __SSE2__
#include <emmintrin.h>
#endif

namespace ingot::python {
namespace {

// Whether torch says the same of the tensor as its parts do.
bool agrees(const TorchTensors::Parts& parts, const WeightState& seen) {
  const auto* const data = static_cast<const std::byte*>(seen.data);
  return static_cast<int64_t>(parts.version) == seen.version &&
         parts.memory + parts.offset * static_cast<int64_t>(seen.element) == data;
}

// Two pieces of 16 bytes.
bool are_same(const std::byte* low, const std::byte* high, const WeightPieces& seen) {
#ifdef __SSE2__
  const auto load = [](const std::byte* at) { return _mm_loadu_si128(reinterpret_cast<const __m128i*>(at)); };
  const __m128i equal =
      _mm_and_si128(_mm_cmpeq_epi8(load(low), load(seen.low)), _mm_cmpeq_epi8(load(high), load(seen.high)));
  return _mm_movemask_epi8(equal) == 0xffff;
#else
  return std::memcmp(low, seen.low, sizeof(seen.low)) == 0 &&
         std::memcmp(high, seen.high, sizeof(seen.high)) == 0;
#endif
}

bool is_same(const WeightGlance& row, const WeightPieces* inner) {
  if (row.width != WeightPieces::kMostBytes) {
    const auto& seen = row.outermost;
    return std::memcmp(row.low, seen.low, row.width) == 0 && std::memcmp(row.high, seen.high, row.width) == 0;
  }
  if (!are_same(row.low, row.high, row.outermost)) return false;
  for (ptrdiff_t i = 1; i < row.pairs; ++i, ++inner) {
    if (!are_same(row.low + i * row.distance, row.high - i * row.distance, *inner)) return false;
  }
  return true;
}

}  // namespace

void WeightGlances::add(int position) {
  rows_.push_back({.position = position});
  inner_.resize(rows_.size() * (most_ - 1));
}

size_t WeightGlances::find_changed(size_t begin, PyObject* const* arguments) const {
  if (!torch_) return begin;
  const TorchTensors::Offsets at = torch_->offsets();
  for (size_t i = begin; i < rows_.size(); ++i) {
    const WeightGlance& row = rows_[i];
    if (row.object == nullptr || (row.position >= 0 && arguments[row.position] != row.object)) return i;
    if (!at.are_same(row.object, row.parts)) return i;  // else the memory may be gone
    if (row.pairs > 0 && !is_same(row, inner_.data() + i * (most_ - 1))) return i;
  }
  return rows_.size();
}

void WeightGlances::remember(size_t index, nb::handle tensor, const WeightState& seen,
                             std::span<const WeightPieces> pieces) {
  WeightGlance& row = rows_[index];
  row = {.position = row.position};
  const auto parts = torch_ ? torch_->locate(tensor) : std::nullopt;
  if (!parts || !agrees(*parts, seen)) return;
  row.object = tensor.ptr();
  row.parts = *parts;
  const PieceLayout layout = PieceLayout::of(seen.bytes, most_);  // 0 bytes on a GPU
  if (layout.pairs == 0) return;
  row.pairs = layout.pairs;
  row.width = layout.width;
  row.distance = layout.distance;
  row.low = static_cast<const std::byte*>(seen.data);
  row.high = row.low + layout.last;
  row.outermost = pieces.front();
  std::ranges::copy(pieces.subspan(1), inner_.data() + index * (most_ - 1));
}

}  // namespace ingot::python
