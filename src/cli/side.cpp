// SPDX-License-Identifier: Apache-2.0
#include "cli/side.h"

#include "cli/models.h"
#include "cli/system.h"
#include "cli/tensor_file.h"

namespace ingot::cli {

bool is_array_file(const std::string& path) {
  const std::string extension = extension_of(path);
  return extension == ".npz" || extension == ".npy" || extension == ".safetensors";
}

bool is_model_file(const std::string& path) {
  const std::string extension = extension_of(path);
  return extension == ".pt2" || extension == ".onnx";
}

EngineHandle open_side(const std::string& path, const RunCommand& command) {
  if (!is_model_file(path)) {
    RunCommand own = command;
    own.engine = path;
    return open_engine(own);
  }
  EngineHandle engine = build_plain(path);
  if (!command.weights.empty()) refit_from_files(engine.get(), command.weights, false);
  return engine;
}

}  // namespace ingot::cli
