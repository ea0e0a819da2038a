// SPDX-License-Identifier: Apache-2.0
// The content of an engine file as plain data.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "engine/program.h"
#include "engine/shard.h"
#include "types/plain_value.h"
#include "types/size_check.h"
#include "types/tensor.h"

namespace ingot::core {

// Where a weight's value comes from.
struct FromConstant {};  // `data`; part of the identity: a refit must not change it
struct FromSource {      // a source weight used unchanged, row-major
  uint32_t index = 0;
};
struct FromInit {  // a result of the init program
  uint32_t output = 0;
};
using WeightOrigin = std::variant<FromConstant, FromSource, FromInit>;

// One entry of the weight table; programs refer to it by id. Its bytes are storage in the type's layout.
// Programs `init` and `main` use the same table. Init has no inputs: it reads constants and sources, and its
// output k is the entry from that output. Entries that only init reads have values only if init can still
// run.
struct WeightData {
  std::string name;  // of the model's weight; "init.3" for results of init
  TensorType type;   // all dims constant
  WeightOrigin origin = FromConstant{};
  std::shared_ptr<const std::byte> data;  // null until init ran, or if left out (stripped engine)
  size_t bytes = 0;                       // storage_bytes(type)

  bool is_constant() const { return std::holds_alternative<FromConstant>(origin); }
  const FromSource* source() const { return std::get_if<FromSource>(&origin); }
  const FromInit* init() const { return std::get_if<FromInit>(&origin); }
};

// A weight of the user's model: refit replaces it and init reads it. Its dtype and shape stay where its value
// is left out.
struct SourceWeight {
  std::string name;
  DType dtype = DType::kF32;
  std::vector<int64_t> shape;
  Digest digest{};       // SHA-256 of its row-major bytes; zero until the engine is first written
  bool is_saved = true;  // false: a buffer that state dicts leave out
  std::shared_ptr<const std::byte> data;  // dense row-major; null if only the prepared form was kept
  std::vector<ShardAxis> shards;          // it is a part of the tensor of that name; empty: all of it
  std::vector<Digest> part_digests;       // of each part, if weights_files have the tensor
};

size_t source_bytes(const SourceWeight& source);  // of its row-major value
// SHA-256 of a value for this weight, zero if it is null.
Digest digest_of(const SourceWeight& source, const std::byte* data);

// A parameter or buffer of the model that is not a source: a refit accepts its name.
struct OtherTensor {
  std::string name;
  std::optional<uint32_t> tied_to;  // it is another name of this source
  std::optional<Digest> digest;  // tensor_digest of a constant or initial state: a refit must not change it
};

// SHA-256 of dtype, shape and row-major bytes.
Digest tensor_digest(const TensorView& value);

// One node of the user's model, for reports and errors.
struct NodeRecord {
  std::string name;
  std::string op;      // ATen overload or op name
  std::string source;  // "file.py:214 in forward"
};

// The interface of the model.
struct Signature {
  std::vector<std::string> argument_names;
  std::string input_tree, output_tree;                  // torch pytree specs, may be empty
  std::vector<CallSlot> inputs, outputs;                // flat; empty: tensors alone
  std::vector<std::optional<uint32_t>> mutated_inputs;  // the flat input that state k is; none: owned
};

enum class WeightsForm : uint8_t { kPrepared, kOriginal };

struct EngineData {
  std::string name;
  std::string origin;  // "torch 2.13.0, schema 8.20"
  std::string key;     // canonical text of everything that determines the engine except the weights' values
  std::string target;  // "cpu:x86-64-v4"
  std::vector<std::string> devices;  // the backend of device k, see Place
  Signature signature;
  Program init;  // no inputs, no symbols
  Program main;
  std::vector<Image> images;
  WeightsForm weights_form = WeightsForm::kPrepared;
  std::vector<WeightData> weights;     // the weight table; ids of WeightStorage and ConstantStorage
  std::vector<SourceWeight> sources;   // in the file with values only if kOriginal or unsaved
  std::vector<OtherTensor> others;     // in the order of their names, which differ from those of sources
  bool has_immutable_weights = false;  // the model's weights became constants
  // The .safetensors files with the values of the sources, which are told by their digests. In an engine file
  // relative to its folder, or absolute.
  std::vector<std::string> weights_files;
  // Of which ranks the parts are whose values are here, by group; empty if there are none.
  ShardRanks weights_ranks;
  std::vector<Tensor> state_values;  // initial values of owned states
  std::vector<NodeRecord> nodes;
  std::map<std::string, std::string> metadata;  // attached by the user when building; keys are not empty
  // The same model for other processors, with the same weights in their original form: the levels that this
  // machine does not run (levels.h). They have no others of their own.
  std::vector<std::shared_ptr<const EngineData>> other_levels;
  std::vector<SizeCheck> checks;  // conditions on the sizes of main's inputs and states, checked before a run
};

// Those of `ranks` on which the values of sharded weights depend.
ShardRanks ranks_of_parts(const EngineData& data, const ShardRanks& ranks);

// The engine with a change that all of its levels need.
template <typename Change>
void change_levels(EngineData& engine, Change&& change) {
  change(engine);
  for (auto& other : engine.other_levels) {
    auto changed = std::make_shared<EngineData>(*other);
    change(*changed);
    other = std::move(changed);
  }
}

// The engine with the values of its weights left out; constants stay.
EngineData without_weights(EngineData engine);

// The symbols of a program as its caller knows them: "x.shape[0]" for input x.
SpelledSymbols spelled_symbols(const Program& program);

}  // namespace ingot::core
