// SPDX-License-Identifier: Apache-2.0
#include "weight_glance.h"

#include <algorithm>

namespace ingot::python {
namespace {

// Whether torch says the same of the tensor as its parts do.
bool agrees(const TorchTensors::Parts& parts, const WeightState& seen) {
  const auto* const data = static_cast<const std::byte*>(seen.data);
  return static_cast<int64_t>(parts.version) == seen.version &&
         parts.memory + parts.offset * static_cast<int64_t>(seen.element) == data;
}

}  // namespace

size_t WeightGlances::add() {
  rows_.emplace_back();
  values_.resize(values_.size() + most_);
  return rows_.size() - 1;
}

void WeightGlances::remember(size_t index, nb::handle tensor, const WeightState& seen) {
  WeightGlance& row = rows_[index] = {};
  if (!torch_ || (seen.on_host && seen.bytes < sizeof(uint64_t))) return;
  const auto parts = torch_->locate(tensor);
  if (!parts || !agrees(*parts, seen)) return;
  row = {.object = tensor.ptr(), .parts = *parts};
  if (!seen.on_host) return;
  row.words = static_cast<const std::byte*>(seen.data);
  row.count = std::clamp<size_t>(seen.bytes / sizeof(uint64_t), 1, most_);
  row.distance = (seen.bytes - sizeof(uint64_t)) / std::max<size_t>(row.count - 1, 1);
  for (size_t i = 0; i < row.count; ++i) values_[index * most_ + i] = load(row.words + i * row.distance);
}

}  // namespace ingot::python
