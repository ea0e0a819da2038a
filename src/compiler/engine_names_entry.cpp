// SPDX-License-Identifier: Apache-2.0
#include "compiler/engine_names_entry.h"

#include <algorithm>

#include "ops/ops.h"

namespace ingot::core {
namespace {

void write(ByteWriter& writer, const std::vector<uint32_t>& numbers) {
  writer.part(std::as_bytes(std::span(numbers)));
}

std::vector<uint32_t> read_numbers(ByteReader& reader) {
  const Bytes bytes = reader.part();
  std::vector<uint32_t> numbers(bytes.size() / sizeof(uint32_t));
  if (!numbers.empty()) std::memcpy(numbers.data(), bytes.data(), numbers.size() * sizeof(uint32_t));
  return numbers;
}

void write(ByteWriter& writer, const std::vector<NameOrigin>& names) {
  std::vector<uint32_t> numbers;
  for (const NameOrigin& name : names) {
    numbers.push_back(static_cast<uint32_t>(name.kind));
    numbers.push_back(name.index);
  }
  write(writer, numbers);
  for (const NameOrigin& name : names) {
    if (name.kind == NameOrigin::Kind::kOp) writer.text(name.op);
  }
}

std::vector<NameOrigin> read_names(ByteReader& reader) {
  const std::vector<uint32_t> numbers = read_numbers(reader);
  std::vector<NameOrigin> names;
  for (size_t i = 0; i + 1 < numbers.size(); i += 2)
    names.push_back({static_cast<NameOrigin::Kind>(numbers[i]), numbers[i + 1], {}});
  for (NameOrigin& name : names) {
    if (name.kind == NameOrigin::Kind::kOp) name.op = reader.text();
  }
  return names;
}

bool fit(const std::vector<NameOrigin>& origins, size_t count, const ModelNames& names) {
  const auto is_known = [&](const NameOrigin& origin) {
    if (origin.kind == NameOrigin::Kind::kValue) return origin.index < names.values().size();
    if (origin.kind == NameOrigin::Kind::kCall) return origin.index < names.calls().size();
    return origin.kind <= NameOrigin::Kind::kOp;
  };
  return origins.size() == count && std::ranges::all_of(origins, is_known);
}

bool fit_sources(const std::vector<uint32_t>& origins, size_t count, const Op& op, const ModelNames& names) {
  const auto is_known = [&](uint32_t origin) {
    return origin < names.sources().size() && names.sources()[origin].first == &op;
  };
  return origins.size() == count && std::ranges::all_of(origins, is_known);
}

bool fit_weights(const EngineOrigins& origins, const EngineData& engine, const NamedModel& model) {
  if (!fit_sources(origins.sources, engine.sources.size(), ops::weight, model.names)) return false;
  for (size_t i = 0; i < engine.sources.size(); ++i) {
    const auto index = static_cast<size_t>(model.names.sources()[origins.sources[i]].second);
    if (index >= model.model.weights.size()) return false;
    const TensorView& view = model.model.weights[index].value.view;
    if (view.dtype != engine.sources[i].dtype || view.shape != engine.sources[i].shape) return false;
  }
  return true;
}

}  // namespace

void write_origins(ByteWriter& writer, const EngineOrigins& origins) {
  for (const auto* numbers : {&origins.nodes, &origins.sources, &origins.states}) write(writer, *numbers);
  for (const auto* names : {&origins.weights, &origins.init, &origins.main}) write(writer, *names);
}

EngineOrigins read_origins(ByteReader& reader) {
  EngineOrigins origins;
  for (auto* numbers : {&origins.nodes, &origins.sources, &origins.states}) *numbers = read_numbers(reader);
  for (auto* names : {&origins.weights, &origins.init, &origins.main}) *names = read_names(reader);
  return origins;
}

bool fit(const EngineOrigins& origins, const EngineData& engine, const NamedModel& model) {
  const ModelNames& names = model.names;
  const bool has_calls =
      std::ranges::all_of(origins.nodes, [&](uint32_t c) { return c < names.calls().size(); });
  return has_calls && origins.nodes.size() == engine.nodes.size() && fit_weights(origins, engine, model) &&
         fit_sources(origins.states, engine.main.states.size(), ops::state, names) &&
         fit(origins.weights, engine.weights.size(), names) &&
         fit(origins.init, engine.init.buffers.size(), names) &&
         fit(origins.main, engine.main.buffers.size(), names);
}

}  // namespace ingot::core
