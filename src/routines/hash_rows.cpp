// SPDX-License-Identifier: Apache-2.0
#include <cstdint>
#include <vector>

#include "routines/routines.h"

namespace ingot::core::routines {

void hash_rows(const RoutineCall& call) {
  const auto require = [](bool fits) { require_fit(fits, "hash_rows"); };
  require(call.inputs.size() == 1 && call.outputs.size() == 1);
  const TensorView &x = call.inputs[0], &hashes = call.outputs[0];
  require((x.dtype == DType::kF64 || x.dtype == DType::kI64) && hashes.dtype == DType::kU64);
  require(!x.shape.empty() && hashes.shape == std::vector<int64_t>(x.shape.begin(), x.shape.end() - 1));
  int64_t rows = 1;
  for (const int64_t size : hashes.shape) rows *= size;
  const auto* from = reinterpret_cast<const uint64_t*>(x.data);
  auto* to = reinterpret_cast<uint64_t*>(hashes.data);
  for (int64_t row = 0; row < rows; ++row, from += x.shape.back()) {
    uint64_t hash = 0;
    for (int64_t i = 0; i < x.shape.back(); ++i) hash ^= from[i];
    to[row] = hash;
  }
}

}  // namespace ingot::core::routines
