// SPDX-License-Identifier: Apache-2.0
#include "cli/models.h"

#include <array>

#include "cli/open_tensors.h"
#include "cli/progress.h"
#include "ingot/build.h"

namespace ingot::cli {
namespace {

int32_t show_progress(void* user, const char* phase, size_t done, size_t total, double remaining_seconds) {
  static_cast<ProgressLine*>(user)->show(phase, done, total, remaining_seconds);
  return 1;
}

}  // namespace

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

std::string describe_model(const std::string& path) {
  ingot_text* text = nullptr;
  check(ingot_inspect_model(path.c_str(), &text));
  return take_text(text);
}

ingot_tensors* open_tensors(const std::string& path) {
  ingot_tensors* tensors = nullptr;
  check(ingot_open_model_tensors(path.c_str(), &tensors));
  return tensors;
}

}  // namespace ingot::cli
