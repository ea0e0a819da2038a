// SPDX-License-Identifier: Apache-2.0
#include "engine/levels.h"

#include <algorithm>
#include <bit>
#include <utility>

#include <fmt/format.h>

#include "engine/validate_step.h"
#include "support/error.h"

namespace ingot::core {
namespace {

constexpr std::string_view kPrefix = "cpu:";

CpuFeatures features_of(const EngineData& level) { return parse_cpu_features(level_name(level.target)); }

// As their callers see them.
std::string text_of(const std::vector<Port>& ports) {
  std::string text;
  for (const Port& port : ports) {
    const TensorType type = type_for_callers(port);
    text += fmt::format("{} {}", port.name, name(type.dtype));
    for (const Dim& dim : type.shape) text += " " + dim.to_string();
    text += "\n";
  }
  return text;
}

bool has_same_sources(const EngineData& a, const EngineData& b) {
  return std::ranges::equal(a.sources, b.sources, [](const SourceWeight& one, const SourceWeight& other) {
    return one.name == other.name && one.dtype == other.dtype && one.shape == other.shape &&
           one.is_saved == other.is_saved && one.data == other.data && one.digest == other.digest &&
           one.part_digests == other.part_digests &&
           whole_shape(one.shape, one.shards) == whole_shape(other.shape, other.shards);
  });
}

bool has_same_states(const EngineData& a, const EngineData& b) {
  return std::ranges::equal(a.state_values, b.state_values, [](const Tensor& one, const Tensor& other) {
    return one.dtype == other.dtype && one.shape == other.shape;
  });
}

bool has_same_names(const EngineData& a, const EngineData& b) {
  const auto is_same = [](const OtherTensor& one, const OtherTensor& other) {
    return one.name == other.name && one.tied_to == other.tied_to && one.digest == other.digest;
  };
  return a.name == b.name && a.metadata == b.metadata && a.weights_files == b.weights_files &&
         a.weights_ranks == b.weights_ranks && a.has_immutable_weights == b.has_immutable_weights &&
         std::ranges::equal(a.others, b.others, is_same);
}

// By their texts, since a NaN equals none.
bool has_same_slots(const std::vector<CallSlot>& a, const std::vector<CallSlot>& b) {
  return std::ranges::equal(
      a, b, [](const CallSlot& one, const CallSlot& other) { return to_string(one) == to_string(other); });
}

bool has_same_signature(const EngineData& a, const EngineData& b) {
  const Signature &one = a.signature, &other = b.signature;
  return one.argument_names == other.argument_names && one.input_tree == other.input_tree &&
         one.output_tree == other.output_tree && has_same_slots(one.inputs, other.inputs) &&
         has_same_slots(one.outputs, other.outputs) && one.mutated_inputs == other.mutated_inputs;
}

void require_same_model(const EngineData& level, const EngineData& first) {
  const std::string title = fmt::format("the level '{}'", level_name(level.target));
  require(level.weights_form == WeightsForm::kOriginal, title, "has prepared weights");
  require(level.devices.empty(), title, "uses a device");
  require(has_same_names(level, first), title, "has another name, metadata or origin of weights");
  require(has_same_signature(level, first), title, "has another signature");
  require(has_same_sources(level, first), title, "has other weights");
  require(has_same_states(level, first), title, "has other states");
  const auto ports = [](const Program& main) {
    return std::vector{text_of(main.inputs), text_of(main.outputs), text_of(main.states)};
  };
  require(ports(level.main) == ports(first.main), title, "has other inputs, outputs or states");
}

}  // namespace

bool is_before(CpuFeatures a, CpuFeatures b) {
  const auto rank = [](CpuFeatures features) {
    return std::pair(-std::popcount(features.bits), features.bits);
  };
  return rank(a) < rank(b);
}

std::string_view level_name(std::string_view target) {
  target = target.substr(0, target.find(' '));
  return target.starts_with(kPrefix) ? target.substr(kPrefix.size()) : target;
}

Levels levels_of(const EngineData& engine) {
  Levels levels = {&engine};
  for (const auto& other : engine.other_levels) levels.push_back(other.get());
  if (levels.size() > 1)
    std::ranges::stable_sort(levels, [](const EngineData* a, const EngineData* b) {
      return is_before(features_of(*a), features_of(*b));
    });
  return levels;
}

std::string name_levels(const Levels& levels) {
  std::string text;
  for (size_t i = 0; i < levels.size(); ++i) {
    const std::string_view before = i == 0 ? "" : i + 1 < levels.size() ? ", " : " or ";
    text += fmt::format("{}{}", before, level_name(levels[i]->target));
  }
  return text;
}

std::string missing_for(const EngineData& level) {
  const CpuFeatures needs = features_of(level), host = host_cpu_features();
  if (!host.covers(needs)) return fmt::format("this processor has {}", to_string(host));
  return request_cpu_features(needs) ? "" : "the system refuses its matrix registers to this process";
}

size_t choose_level(const Levels& levels, std::string_view wanted) {
  if (!wanted.empty()) {
    const CpuFeatures asked = parse_cpu_features(wanted);
    const auto is_asked = [&](const EngineData* level) { return features_of(*level) == asked; };
    const auto found = std::ranges::find_if(levels, is_asked);
    if (found != levels.end()) return static_cast<size_t>(found - levels.begin());
    throw UserError("INGOT-U220",
                    fmt::format("the engine was built for a processor with {}; the level '{}' was asked for",
                                name_levels(levels), to_string(asked)),
                    "ask for a level that it has, or for none: the best that runs here is taken");
  }
  if (levels.size() == 1) return 0;
  const auto runs = [](const EngineData* level) { return missing_for(*level).empty(); };
  const auto found = std::ranges::find_if(levels, runs);
  return found == levels.end() ? 0 : static_cast<size_t>(found - levels.begin());
}

std::shared_ptr<EngineData> with_level(std::vector<std::shared_ptr<EngineData>> levels, size_t used) {
  std::shared_ptr<EngineData> engine = std::move(levels[used]);
  levels.erase(levels.begin() + static_cast<ptrdiff_t>(used));
  engine->other_levels.assign(levels.begin(), levels.end());
  return engine;
}

void share_sources(EngineData& engine) {
  for (auto& other : engine.other_levels) {
    auto level = std::make_shared<EngineData>(*other);
    level->sources = engine.sources;
    level->weights_files = engine.weights_files;
    level->weights_ranks = engine.weights_ranks;
    for (WeightData& weight : level->weights) {
      if (const FromSource* from = weight.source()) weight.data = level->sources[from->index].data;
      if (weight.init() != nullptr) weight.data = nullptr;
    }
    other = std::move(level);
  }
}

void validate_levels(const Levels& levels) {
  for (size_t i = 0; i < levels.size(); ++i) {
    const EngineData& level = *levels[i];
    require(level.target.starts_with(kPrefix), level.name, "has a level that is for no processor");
    const bool is_ordered = i == 0 || is_before(features_of(*levels[i - 1]), features_of(level));
    require(is_ordered, level.name, "has a level twice, or its levels are not in order");
    require_same_model(level, *levels[0]);
  }
}

}  // namespace ingot::core
