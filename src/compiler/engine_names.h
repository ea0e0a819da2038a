// SPDX-License-Identifier: Apache-2.0
// The names in an engine, apart from its structure: where each comes from, so that the engine of one model
// can be given the names of another model of equal structure.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "compiler/model_names.h"
#include "engine/engine_data.h"
#include "importers/aten/imported.h"
#include "importers/aten/program/aten_graph.h"

namespace ingot::core {

// Whose name a buffer or constant has.
struct NameOrigin {
  enum class Kind : uint8_t {
    kNone,   // it has none
    kValue,  // that of a value of the model: ModelNames::values
    kCall,   // passes made it for a call: the call's name with a suffix that makes it unique
    kOp,     // ... for no call: `op` with a suffix
  };
  Kind kind = Kind::kNone;
  uint32_t index = 0;
  std::string op;
};

// In terms of ModelNames, so that they are the same for all models of equal structure.
struct EngineOrigins {
  std::vector<uint32_t> nodes;            // the call of each node record
  std::vector<uint32_t> sources, states;  // ModelNames::sources
  std::vector<NameOrigin> weights;        // of the weight table: constants only
  std::vector<NameOrigin> init, main;     // of the programs' buffers
};

// `value` is one of a graph that has come from the model's by passes.
NameOrigin origin_of(const Value& value, const ModelNames& names);
// Of all buffers of a program that was planned from `graph`.
std::vector<NameOrigin> origins_of_buffers(const Program& program, const Graph& graph,
                                           const ModelNames& names);
uint32_t call_of(const Node& node, const ModelNames& names);

// A model that an engine belongs to.
struct NamedModel {
  const aten::Program& program;
  const aten::Imported& model;  // its graph may be gone
  const ModelNames& names;
};

// Gives an engine all that distinguishes it from other engines of its structure: names, trees, lines, texts
// of checks, initial states, and the values of the model's weights.
void bind_engine(EngineData& engine, const EngineOrigins& origins, const NamedModel& model);

// The values of a weight, row-major: the model's own memory where it is.
Tensor dense_values(const aten::WeightSource& weight);

}  // namespace ingot::core
