// SPDX-License-Identifier: Apache-2.0
// The content of an engine file as plain data.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/program.h"
#include "types/tensor.h"

namespace ingot::core {

// A tensor in the weights section. Its bytes are storage in the type's layout.
struct WeightData {
  std::string name;               // of the model's weight; "init.3" for what init made
  TensorType type;
  bool constant = false;          // part of the identity: a refit must not change it
  std::shared_ptr<const std::byte> data;  // null: left out (stripped engine)
  size_t bytes = 0;
};

// A weight of the user's model: what refit takes and init reads.
struct SourceWeight {
  std::string name;
  DType dtype;
  std::vector<int64_t> shape;
  Digest digest{};                // SHA-256 of its row-major bytes when the engine was built; zero: unknown
};

// One node of the user's model, for reports and errors.
struct NodeRecord {
  std::string name;
  std::string op;        // ATen overload or op name
  std::string source;    // "file.py:214 in forward"
};

// What the model was and how it is called.
struct Signature {
  std::vector<std::string> argument_names;
  std::string input_tree, output_tree;     // torch pytree specs, may be empty
  // Positions of the flat inputs that are tensors; others are literals that a caller must repeat ("3", "none", "true").
  std::vector<std::string> literals;       // one per flat input, "" for tensors
  std::vector<std::string> output_literals;  // likewise for flat outputs
  std::vector<int32_t> mutated_inputs;     // state k is bound to flat input mutated_inputs[k], or -1: owned
};

enum class WeightsForm : uint8_t { kPrepared, kOriginal };

struct EngineData {
  std::string name;
  std::string origin;              // "torch 2.13.0, schema 8.20"
  std::string key;                 // canonical key material
  std::string target;              // "cpu:x86-64-v4"
  CpuFeatures needs;               // union of the images'
  Signature signature;
  Program init;                    // sources -> prepared weights (outputs); empty if weights_form is prepared and stripped of init
  Program main;
  std::vector<Image> images;
  WeightsForm weights_form = WeightsForm::kPrepared;
  std::vector<WeightData> weights;         // the weight table; ids of Storage::kWeight and kConstant
  std::vector<SourceWeight> sources;       // inputs of init by position
  std::vector<Tensor> state_values;        // initial values of owned states
  std::vector<NodeRecord> nodes;
};

}  // namespace ingot::core
