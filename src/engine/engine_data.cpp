// SPDX-License-Identifier: Apache-2.0
#include "engine/engine_data.h"

#include <fmt/core.h>

#include "types/linear_dim.h"

namespace ingot::core {
namespace {

void name_dims(const Program& program, bool are_alone, SpelledSymbols& names) {
  for (const auto* ports : {&program.inputs, &program.states}) {
    for (const Port& port : *ports) {
      for (size_t i = 0; i < port.type.rank(); ++i) {
        const auto linear = linear_dim(port.type.shape[i]);
        if (linear && port.type.shape[i].is_symbol() == are_alone)
          names.emplace(linear->symbol, linear->spelled(fmt::format("{}.shape[{}]", port.name, i)));
      }
    }
  }
}

}  // namespace

SpelledSymbols spelled_symbols(const Program& program) {
  SpelledSymbols names;
  for (const bool are_alone : {true, false}) name_dims(program, are_alone, names);
  for (const Step& step : program.steps) {
    for (const SymbolBinding& binding : step.binds) {
      const auto reads = [&](const Port& port) {
        return !step.uses.empty() && step.uses[0].buffer == port.buffer;
      };
      const auto number = std::ranges::find_if(program.inputs, reads);
      if (number != program.inputs.end()) names.emplace(binding.symbol, number->name);
    }
  }
  return names;
}

size_t source_bytes(const SourceWeight& source) {
  return Tensor{nullptr, source.dtype, source.shape}.bytes();
}

Digest digest_of(const SourceWeight& source, const std::byte* data) {
  return data == nullptr ? Digest{} : digest({data, source_bytes(source)});
}

ShardRanks ranks_of_parts(const EngineData& data, const ShardRanks& ranks) {
  ShardRanks own;
  for (const SourceWeight& source : data.sources) {
    for (const ShardAxis& shard : source.shards) {
      auto found = ranks.find(shard.group);
      if (found == ranks.end()) found = ranks.find("");
      if (found != ranks.end()) own.emplace(shard.group, found->second);
    }
  }
  return own;
}

EngineData without_weights(EngineData engine) {
  change_levels(engine, [](EngineData& level) {
    for (WeightData& weight : level.weights) {
      if (!weight.is_constant()) weight.data = nullptr;
    }
    for (SourceWeight& source : level.sources) source.data = nullptr;
    level.weights_ranks.clear();
  });
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
