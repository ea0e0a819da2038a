// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "importers/onnx/model.h"
#include "types/tensor.h"

namespace ingot::core::onnx {

// A model and its values.
struct LoadedModel {
  Model model;
  std::shared_ptr<const void> owner;     // keeps the bytes that values of attributes point into
  std::map<std::string, Tensor> values;  // of the graph's initializers
};

// Whether the bytes may be a model: they begin like a ModelProto.
bool is_onnx(Bytes file);

int64_t opset_of(const Model& model);  // of ONNX's own operators; 0 if the model has none

// `folder`: of the files that values are in; nullopt: such values are an error. UserError INGOT-U540 to U543
// for damaged files, UnsupportedError INGOT-N540, N542.
std::shared_ptr<const LoadedModel> load(Bytes file, std::shared_ptr<const void> owner,
                                        std::optional<std::filesystem::path> folder);

// For people: `ingot inspect model.onnx`.
std::string to_string(const LoadedModel& model);

}  // namespace ingot::core::onnx
