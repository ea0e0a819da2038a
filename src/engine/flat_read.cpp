// SPDX-License-Identifier: Apache-2.0
#include "engine/flat_read.h"

namespace ingot::core {
Layout FlatReader::layout(const flatbuffers::Vector<int64_t>* values) const {
  const std::vector<int64_t> triples = numbers(values);
  require(triples.size() % 3 == 0 && triples.size() <= 3 * 64, "a layout is malformed");
  Layout result;
  for (size_t i = 0; i < triples.size(); i += 3) {
    require(triples[i] >= 0 && triples[i] < 64 && triples[i + 1] > 0 && triples[i + 2] >= 0,
            "a layout is malformed");
    result.axes.push_back({static_cast<int32_t>(triples[i]), triples[i + 1], triples[i + 2]});
  }
  return result;
}

}  // namespace ingot::core
