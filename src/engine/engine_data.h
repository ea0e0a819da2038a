// SPDX-License-Identifier: Apache-2.0
// The content of an engine file as plain data.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/program.h"
#include "types/size_check.h"
#include "types/tensor.h"

namespace ingot::core {

// One entry of the weight table; programs refer to it by id. Its bytes are storage in the type's layout. It
// is one of
//  - a constant: `constant` is set, `data` holds it;
//  - a source weight used unchanged: `source` is its index (row-major);
//  - a result of the init program: `init_output` is the index of that output.
// Programs `init` and `main` use the same table. Init has no inputs: it reads constants and entries with
// `source`, and its output k is the entry with init_output == k. Entries that only init reads have values
// only if init can still run.
struct WeightData {
  std::string name;       // of the model's weight; "init.3" for results of init
  TensorType type;        // all dims constant
  bool constant = false;  // part of the identity: a refit must not change it
  int32_t source = -1;
  int32_t init_output = -1;
  std::shared_ptr<const std::byte> data;  // null until init ran, or if left out (stripped engine)
  size_t bytes = 0;                       // storage_bytes(type)
};

// A weight of the user's model: refit replaces it and init reads it.
struct SourceWeight {
  std::string name;
  DType dtype = DType::kF32;
  std::vector<int64_t> shape;
  Digest digest{};  // SHA-256 of its row-major bytes; zero until the engine is first written
  std::shared_ptr<const std::byte> data;  // dense row-major; null if only the prepared form was kept
};

// SHA-256 of a value for this weight, zero if it is null.
Digest digest_of(const SourceWeight& source, const std::byte* data);

// One node of the user's model, for reports and errors.
struct NodeRecord {
  std::string name;
  std::string op;      // ATen overload or op name
  std::string source;  // "file.py:214 in forward"
};

// The interface of the model.
struct Signature {
  std::vector<std::string> argument_names;
  std::string input_tree, output_tree;  // torch pytree specs, may be empty
  // Positions of the flat inputs that are tensors; others are literals that a caller must repeat ("3",
  // "none", "true").
  std::vector<std::string> literals;         // one per flat input, "" for tensors
  std::vector<std::string> output_literals;  // likewise for flat outputs
  std::vector<int32_t> mutated_inputs;       // state k is bound to flat input mutated_inputs[k], or -1: owned
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
  std::vector<WeightData> weights;    // the weight table; ids of Storage::kWeight and kConstant
  std::vector<SourceWeight> sources;  // in the file with values only if kOriginal
  std::vector<Tensor> state_values;   // initial values of owned states
  std::vector<NodeRecord> nodes;
  std::map<std::string, std::string> metadata;  // attached by the user when building; keys are not empty
  std::vector<SizeCheck> checks;  // conditions on the sizes of main's inputs and states, checked before a run
};

// The symbols of a program as its caller knows them: "x.shape[0]" for input x.
SpelledSymbols spelled_symbols(const Program& program);

}  // namespace ingot::core
