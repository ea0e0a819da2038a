// SPDX-License-Identifier: Apache-2.0
#include "runtime/snapshot.h"

namespace ingot::core {
namespace {

// Of the first weight set: no refit has changed it.
constexpr uint64_t kFirstGeneration = 1;

Digest digest_of(const SourceWeight& source, const std::byte* data) {
  const Tensor dense{nullptr, source.dtype, source.shape};
  return data == nullptr ? Digest{} : digest(Bytes(data, dense.bytes()));
}

void refresh_sources(EngineData& data, const WeightSet& weights) {
  for (size_t i = 0; i < data.sources.size(); ++i) {
    SourceWeight& source = data.sources[i];
    if (source.data != nullptr && source.data == weights.sources[i]) continue;
    source.digest = digest_of(source, weights.sources[i].get());
    source.data = weights.sources[i];
  }
}

}  // namespace

std::shared_ptr<const EngineData> snapshot(const std::shared_ptr<const Engine>& engine) {
  engine->require_verified_weights();
  const std::shared_ptr<const WeightSet> weights = engine->weights();
  if (weights->generation == kFirstGeneration) return {engine, &engine->data()};
  auto data = std::make_shared<EngineData>(engine->data());
  refresh_sources(*data, *weights);
  for (size_t id = 0; id < data->weights.size(); ++id) data->weights[id].data = weights->data[id];
  return data;
}

}  // namespace ingot::core
