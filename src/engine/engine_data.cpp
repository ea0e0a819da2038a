// SPDX-License-Identifier: Apache-2.0
#include "engine/engine_data.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace ingot::core {

size_t source_bytes(const SourceWeight& source) {
  return Tensor{nullptr, source.dtype, source.shape}.bytes();
}

Digest digest_of(const SourceWeight& source, const std::byte* data) {
  return data == nullptr ? Digest{} : digest({data, source_bytes(source)});
}

EngineData without_weights(EngineData engine) {
  for (WeightData& weight : engine.weights) {
    if (!weight.is_constant()) weight.data = nullptr;
  }
  for (SourceWeight& source : engine.sources) source.data = nullptr;
  return engine;
}

Digest tensor_digest(const TensorView& value) {
  const bool is_dense = bit_width(value.dtype) >= 8 && value.strides == row_major_strides(value.shape);
  const Tensor dense =
      is_dense ? Tensor{{std::shared_ptr<void>(), value.data}, value.dtype, value.shape} : to_dense(value);
  DigestBuilder builder;
  builder.update(as_bytes(fmt::format("{}[{}]", name(dense.dtype), fmt::join(dense.shape, ","))));
  builder.update({dense.data.get(), dense.bytes()});
  return builder.finish();
}

}  // namespace ingot::core
