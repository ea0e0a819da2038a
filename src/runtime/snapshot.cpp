// SPDX-License-Identifier: Apache-2.0
#include "runtime/snapshot.h"

namespace ingot::core {

std::shared_ptr<const EngineData> current_data(const std::shared_ptr<const Engine>& engine) {
  const std::shared_ptr<const WeightSet> weights = engine->weights();
  if (weights->refitted.empty()) return {engine, &engine->data()};
  auto data = std::make_shared<EngineData>(engine->data());
  for (const auto& [index, digest] : weights->refitted) {
    SourceWeight& source = data->sources[index];
    source.data = weights->sources[index];
    source.digest = source.data == nullptr ? digest : digest_of(source, source.data.get());
  }
  for (size_t id = 0; id < data->weights.size(); ++id) data->weights[id].data = weights->data[id];
  return data;
}

std::shared_ptr<const EngineData> snapshot(const std::shared_ptr<const Engine>& engine) {
  engine->require_verified_weights();
  return current_data(engine);
}

}  // namespace ingot::core
