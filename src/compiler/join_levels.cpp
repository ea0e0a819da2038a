// SPDX-License-Identifier: Apache-2.0
#include "compiler/join_levels.h"

#include <algorithm>
#include <map>
#include <set>
#include <string_view>
#include <utility>

#include "engine/levels.h"
#include "support/error.h"

namespace ingot::core {
namespace {

using Table = std::vector<SourceWeight>;
using Indices = std::map<std::string_view, uint32_t>;

Indices indices_of(const Table& sources) {
  Indices indices;
  for (uint32_t i = 0; i < sources.size(); ++i) indices.emplace(sources[i].name, i);
  return indices;
}

// Those that any level reads: which ones depends on its passes.
Table all_sources(const std::vector<std::shared_ptr<EngineData>>& levels) {
  Table sources;
  std::set<std::string_view> names;
  for (const auto& level : levels) {
    for (const SourceWeight& source : level->sources) {
      if (names.insert(source.name).second) sources.push_back(source);
    }
  }
  return sources;
}

void take_sources(const Table& sources, const Indices& indices, EngineData& level) {
  const Table own = std::exchange(level.sources, sources);
  for (WeightData& weight : level.weights) {
    const FromSource* from = weight.source();
    if (from == nullptr) continue;
    weight.origin = FromSource{indices.at(own[from->index].name)};
    weight.data = sources[weight.source()->index].data;
  }
  std::erase_if(level.others, [&](const OtherTensor& other) { return indices.contains(other.name); });
  for (OtherTensor& other : level.others) {
    if (other.tied_to) other.tied_to = indices.at(own[*other.tied_to].name);
  }
}

}  // namespace

std::shared_ptr<EngineData> join_levels(std::vector<std::shared_ptr<EngineData>> levels) {
  std::ranges::sort(levels, [](const auto& a, const auto& b) {
    return is_before(parse_cpu_features(level_name(a->target)), parse_cpu_features(level_name(b->target)));
  });
  const Table sources = all_sources(levels);
  const Indices indices = indices_of(sources);
  for (const auto& level : levels) {
    take_sources(sources, indices, *level);
    level->weights_form = WeightsForm::kOriginal;
    level->weights_files = levels[0]->weights_files;
  }
  Levels all;
  for (const auto& level : levels) all.push_back(level.get());
  try {
    validate_levels(all);
  } catch (const UserError& error) {
    throw InternalError("the levels of one model differ: " + error.details().message);
  }
  return with_level(std::move(levels), choose_level(all, {}));
}

}  // namespace ingot::core
