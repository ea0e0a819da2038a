// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include <flatbuffers/flatbuffers.h>

#include "types/layout.h"

namespace ingot::core {

// A vector of function(item), one element per item.
template <typename Items, typename Function>
auto write_all(flatbuffers::FlatBufferBuilder& builder, const Items& items, Function&& function) {
  std::vector<decltype(function(*items.begin()))> offsets;
  for (const auto& item : items) offsets.push_back(function(item));
  return builder.CreateVector(offsets);
}

inline std::vector<int64_t> layout_numbers(const Layout& layout) {
  std::vector<int64_t> triples;
  for (const LayoutAxis& axis : layout.axes)
    triples.insert(triples.end(), {axis.dim, axis.divisor, axis.modulus});
  return triples;
}

inline std::vector<std::byte> finished_bytes(const flatbuffers::FlatBufferBuilder& builder) {
  const auto* data = reinterpret_cast<const std::byte*>(builder.GetBufferPointer());
  return {data, data + builder.GetSize()};
}

}  // namespace ingot::core
