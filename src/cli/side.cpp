// SPDX-License-Identifier: Apache-2.0
#include "cli/side.h"

#include <array>
#include <filesystem>

#include "cli/progress.h"
#include "cli/tensor_file.h"
#include "ingot/build.h"

namespace ingot::cli {
namespace {

int32_t show_progress(void* user, const char* phase, size_t done, size_t total, double remaining_seconds) {
  static_cast<ProgressLine*>(user)->show(phase, done, total, remaining_seconds);
  return 1;
}

EngineHandle build_plain(const std::string& path) {
  constexpr std::array kPlain = {ingot_option{"optimization_level", "0"}, ingot_option{"numerics", "strict"}};
  ProgressLine line;
  const ingot_build_options options{.struct_size = sizeof(options),
                                    .options = kPlain.data(),
                                    .option_count = kPlain.size(),
                                    .progress = &show_progress,
                                    .user = &line,
                                    .metadata = nullptr,
                                    .metadata_count = 0,
                                    .output = nullptr,
                                    .session = nullptr,
                                    .store = nullptr};
  ingot_engine* engine = nullptr;
  check(ingot_build_model(path.c_str(), &options, &engine, nullptr));
  return {engine, &ingot_engine_free};
}

}  // namespace

bool is_array_file(const std::string& path) {
  const std::string extension = std::filesystem::path(path).extension().string();
  return extension == ".npz" || extension == ".npy" || extension == ".safetensors";
}

bool is_model_file(const std::string& path) {
  const std::string extension = std::filesystem::path(path).extension().string();
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
