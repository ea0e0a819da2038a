// SPDX-License-Identifier: Apache-2.0
#include "engine/engine_data.h"

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
  const Tensor dense = is_dense(value)
                           ? Tensor{{std::shared_ptr<void>(), value.data}, value.dtype, value.shape}
                           : to_dense(value);
  DigestBuilder builder;
  builder.update(as_bytes(to_string(dense.dtype, dense.shape)));
  builder.update({dense.data.get(), dense.bytes()});
  return builder.finish();
}

}  // namespace ingot::core
