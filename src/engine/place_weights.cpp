// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <map>
#include <set>

#include "engine/sections.h"

namespace ingot::core {
namespace {

constexpr uint64_t kWeightAlignment = 64;

bool is_all_zero(Bytes bytes) {
  return std::ranges::all_of(bytes, [](std::byte byte) { return byte == std::byte{0}; });
}

// Weight ids that a program uses, in order of first use.
void collect_ids(const Program& program, std::vector<uint32_t>& ids, std::set<uint32_t>& seen) {
  const auto add = [&](BufferId use) {
    if (use == kNoId) return;
    const auto weight = program.buffers[root_buffer(program, use)].weight();
    if (weight && seen.insert(*weight).second) ids.push_back(*weight);
  };
  for (const Step& step : program.steps) {
    for (const BufferUse& use : step.uses) add(use.buffer);
    for (const uint32_t nested : step.nested()) collect_ids(program.nested[nested], ids, seen);
  }
}

class Placer {
 public:
  uint64_t place(const std::byte* data, size_t bytes) {
    if (data == nullptr) return kNotKept;
    const auto [entry, is_new] = known_.try_emplace({data, bytes}, placed.length);
    if (is_new) entry->second = place_new({data, bytes});
    return entry->second;
  }

  // Values that follow may be those of levels before.
  void begin_level() { before_ = placed.pieces.size(); }

  PlacedLevels placed;

 private:
  uint64_t place_new(Bytes bytes) {
    for (size_t i = 0; i < before_; ++i) {
      if (std::ranges::equal(placed.pieces[i].bytes, bytes)) return placed.pieces[i].offset;
    }
    const uint64_t offset = placed.length;
    placed.pieces.push_back({offset, bytes});
    placed.length = align_up(offset + bytes.size(), kWeightAlignment);
    return offset;
  }

  std::map<std::pair<const std::byte*, size_t>, uint64_t> known_;
  size_t before_ = 0;
};

WeightPlaces place_level(const EngineData& engine, Placer& placer) {
  WeightPlaces places;
  places.weights.assign(engine.weights.size(), kNotKept);
  std::vector<uint32_t> ids;
  std::set<uint32_t> used;
  collect_ids(engine.main, ids, used);
  const bool original = engine.weights_form == WeightsForm::kOriginal;
  for (uint32_t id = 0; id < engine.weights.size(); ++id) {
    if (engine.weights[id].is_constant() && used.insert(id).second) ids.push_back(id);
  }
  for (const uint32_t id : ids) {
    const WeightData& entry = engine.weights[id];
    if (original && entry.init() != nullptr) continue;
    places.weights[id] = placer.place(entry.data.get(), entry.bytes);
  }
  for (const SourceWeight& source : engine.sources) {
    const bool is_stored = original || !source.is_saved;
    places.sources.push_back(is_stored ? placer.place(source.data.get(), source_bytes(source)) : kNotKept);
  }
  for (uint32_t id = 0; original && id < engine.weights.size(); ++id) {
    const FromSource* source = engine.weights[id].source();
    if (source != nullptr) places.weights[id] = places.sources[source->index];
  }
  for (const Tensor& state : engine.state_values) {
    const bool kept = state.data != nullptr && !is_all_zero({state.data.get(), state.bytes()});
    places.states.push_back(kept ? placer.place(state.data.get(), state.bytes()) : kNotKept);
  }
  return places;
}

}  // namespace

PlacedLevels place_weights(const Levels& levels) {
  Placer placer;
  for (const EngineData* level : levels) {
    placer.begin_level();
    placer.placed.levels.push_back(place_level(*level, placer));
  }
  return std::move(placer.placed);
}

std::vector<Extent> distinct(std::vector<Extent> extents) {
  std::erase_if(extents, [](const Extent& extent) { return extent.length == 0; });
  std::ranges::sort(extents);
  const auto repeated = std::ranges::unique(extents);
  extents.erase(repeated.begin(), repeated.end());
  return extents;
}

std::vector<uint64_t> place_images(const std::vector<Image>& images, uint64_t& length) {
  std::vector<uint64_t> offsets;
  length = 0;
  for (const Image& image : images) {
    length = align_up(length, image.alignment);
    offsets.push_back(length);
    length += image.code.size();
  }
  return offsets;
}

}  // namespace ingot::core
