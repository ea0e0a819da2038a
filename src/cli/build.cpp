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

void print_slow(const nlohmann::json& nodes) {
  for (const auto& slow : nodes) {
    const auto ms = [&](const char* time) { return slow.value(time, 0.0) / 1e6; };
    fmt::print("  slow: {} ({}): {}; predicted {:.3g} ms a run, torch {:.3g} ms{}{}\n", slow.value("op", ""),
               slow.value("node", ""), slow.value("reason", ""), ms("own_ns"), ms("peer_ns"),
               slow.value("source", "").empty() ? "" : " -- ", slow.value("source", ""));
  }
}

}  // namespace

void build(const BuildCommand& command) {
  std::filesystem::path output = command.output;
  if (output.empty()) output = std::filesystem::path(command.model).replace_extension(".ingot");
  check_output_path(output);
  std::vector<ingot_option> options;
  for (const auto& [name, value] : command.options) options.push_back({name.c_str(), value.c_str()});
  std::vector<std::pair<std::string, std::string>> entries;
  for (const std::string& text : command.metadata)
    entries.emplace_back(text.substr(0, text.find('=')), text.substr(text.find('=') + 1));
  std::vector<ingot_option> metadata;
  for (const auto& [key, value] : entries) metadata.push_back({key.c_str(), value.c_str()});
  catch_interrupts();
  ingot_engine* engine = nullptr;
  ingot_text* report = nullptr;
  {
    ProgressLine line;
    const ingot_build_options build_options{.struct_size = sizeof(ingot_build_options),
                                            .options = options.data(),
                                            .option_count = options.size(),
                                            .progress = &report_progress,
                                            .user = &line,
                                            .metadata = metadata.data(),
                                            .metadata_count = metadata.size()};
    check(ingot_build_pt2(command.model.c_str(), &build_options, &engine, &report));
  }
  const std::unique_ptr<ingot_engine, decltype(&ingot_engine_free)> owner(engine, &ingot_engine_free);
  check(ingot_engine_save(engine, output.c_str()));
  auto json = nlohmann::json::parse(take_text(report));
  json["output"] = output.string();
  // Of a pipe or device no size is known.
  json["bytes"] = std::filesystem::is_regular_file(output) ? std::filesystem::file_size(output) : 0;
  if (command.json) {
    fmt::print("{}\n", json.dump(2));
  } else {
    fmt::print("{}: {} bytes, {} kernels ({} distinct), built in {:.2f} s\n", output.string(),
               json["bytes"].get<uint64_t>(), json.value("kernels", 0), json.value("distinct_kernels", 0),
               json.value("seconds", 0.0));
    print_slow(json["slow"]);
  }
}

}  // namespace ingot::cli
