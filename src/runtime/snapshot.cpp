// SPDX-License-Identifier: Apache-2.0
#include "runtime/snapshot.h"

#include "engine/levels.h"
#include "support/paths.h"

namespace ingot::core {
namespace {

// `fill_digests`: also for new weights; zero otherwise.
std::shared_ptr<const EngineData> data_now(const std::shared_ptr<const Engine>& engine, bool fill_digests) {
  const std::shared_ptr<const WeightSet> weights = engine->weights();
  if (weights->refitted.empty()) return {engine, &engine->data()};
  auto data = std::make_shared<EngineData>(engine->data());
  data->weights_files.clear();
  for (const std::filesystem::path& file : weights->files) data->weights_files.push_back(to_text(file));
  share_sources(*data);
  if (!weights->files.empty()) return data;
  data->weights_ranks = weights->ranks;
  for (const auto& [index, digest] : weights->refitted) {
    SourceWeight& source = data->sources[index];
    source.data = weights->sources[index];
    source.digest = digest;
    if (fill_digests && source.data != nullptr) source.digest = digest_of(source, source.data.get());
  }
  for (size_t id = 0; id < data->weights.size(); ++id) data->weights[id].data = weights->data[id];
  share_sources(*data);
  return data;
}

}  // namespace

std::shared_ptr<const EngineData> current_data(const std::shared_ptr<const Engine>& engine) {
  return data_now(engine, true);
}

std::shared_ptr<const EngineData> snapshot(const std::shared_ptr<const Engine>& engine) {
  engine->require_verified_weights();
  return data_now(engine, false);  // the writer computes the digests of what it writes
}

}  // namespace ingot::core
