// SPDX-License-Identifier: Apache-2.0
#include <fmt/core.h>

#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>

#include "cli/commands.h"
#include "cli/output_file.h"
#include "cli/progress.h"

namespace ingot::cli {
namespace {

int32_t report_progress(void* user, const char* phase, size_t done, size_t total, double remaining_seconds) {
  static_cast<ProgressLine*>(user)->show(phase, done, total, remaining_seconds);
  return was_interrupted() ? 0 : 1;
}

}  // namespace

void build(const BuildCommand& command) {
  std::filesystem::path output = command.output;
  if (output.empty()) output = std::filesystem::path(command.model).replace_extension(".ingot");
  check_output_path(output);
  std::vector<ingot_option> options;
  for (const auto& [name, value] : command.options) options.push_back({name.c_str(), value.c_str()});
  catch_interrupts();
  ingot_engine* engine = nullptr;
  ingot_text* report = nullptr;
  {
    ProgressLine line;
    const ingot_build_options build_options{.struct_size = sizeof(ingot_build_options),
                                            .options = options.data(),
                                            .option_count = options.size(),
                                            .progress = &report_progress,
                                            .user = &line};
    check(ingot_build_pt2(command.model.c_str(), &build_options, &engine, &report));
  }
  const std::unique_ptr<ingot_engine, decltype(&ingot_engine_free)> owner(engine, &ingot_engine_free);
  check(ingot_engine_save(engine, output.c_str()));
  auto json = nlohmann::json::parse(take_text(report));
  json["output"] = output.string();
  json["bytes"] = std::filesystem::file_size(output);
  if (command.json) {
    fmt::print("{}\n", json.dump(2));
  } else {
    fmt::print("{}: {} bytes, {} kernels ({} distinct), built in {:.2f} s\n", output.string(),
               json["bytes"].get<uint64_t>(), json.value("kernels", 0), json.value("distinct_kernels", 0),
               json.value("seconds", 0.0));
  }
}

}  // namespace ingot::cli
