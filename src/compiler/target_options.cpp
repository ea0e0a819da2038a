// SPDX-License-Identifier: Apache-2.0
#include "compiler/target_options.h"

#include <fmt/core.h>

#include <algorithm>
#include <string>
#include <vector>

#include "compiler/option_values.h"
#include "engine/levels.h"
#include "engine/platforms.h"
#include "engine/section_info.h"
#include "support/cpu_features.h"
#include "support/error.h"

namespace ingot::core {
namespace {

constexpr std::string_view kLevelsForm =
    "one processor, or several that differ, separated by commas: x86-64-v3,x86-64-v4";

std::vector<CpuFeatures> parse_levels(std::string_view name, std::string_view value) {
  std::vector<CpuFeatures> levels;
  for (size_t begin = 0; begin <= value.size();) {
    const size_t end = std::min(value.find(',', begin), value.size());
    const std::string_view word = value.substr(begin, end - begin);
    if (word.empty()) refuse_option(name, value, kLevelsForm);
    const CpuFeatures features = parse_cpu_features(word);
    if (std::ranges::find(levels, features) != levels.end())
      throw UserError(
          "INGOT-U002",
          fmt::format("option \"{}\" names the level {} twice, in \"{}\"", name, to_string(features), value),
          fmt::format("leave one out; native is {} here", to_string(host_cpu_features())));
    levels.push_back(features);
    begin = end + 1;
  }
  if (levels.size() > kMostLevels) refuse_option(name, value, fmt::format("at most {} levels", kMostLevels));
  std::ranges::sort(levels, is_before);
  return levels;
}

}  // namespace

void set_levels(CompileOptions& options, std::string_view name, std::string_view value) {
  const std::vector<CpuFeatures> levels = parse_levels(name, value);
  options.target.device = options.target.host_device = to_string(levels[0]);
  options.levels.clear();
  for (const CpuFeatures& level : levels) options.levels.push_back(to_string(level));
  if (levels.size() == 1) options.levels.clear();
}

void set_device(CompileOptions& options, std::string_view name, std::string_view value) {
  const size_t colon = std::min(value.find(':'), value.size());
  Target& target = options.target;
  target.backend = value.substr(0, colon);
  const std::string device(value.substr(std::min(colon + 1, value.size())));
  const bool has_processor = target.backend == "cpu" && !target.host_device.empty();
  if (has_processor && device.empty()) return;
  if (has_processor && options.levels.empty() &&
      parse_cpu_features(device) != parse_cpu_features(target.host_device))
    refuse_option(name, value, fmt::format("cpu, since the option \"cpu\" is {}", target.host_device));
  target.device = device;
}

void check_levels(CompileOptions& options) {
  if (options.levels.empty()) return;
  Target& target = options.target;
  if (target.backend != "cpu")
    throw UserError("INGOT-U002",
                    fmt::format("option \"cpu\" names several levels, but the backend is {}", target.backend),
                    "an engine for a device has code for one processor: name one");
  if (target.device.empty()) target.device = options.levels[0];
  if (target.device != options.levels[0])
    refuse_option("device", target.device, "cpu, where the option \"cpu\" names several levels");
}

void set_platform(CompileOptions& options, std::string_view name, std::string_view value) {
  if (value.empty()) return;
  const std::string_view architecture = architecture_of(value);
  if (architecture.empty()) refuse_option(name, value, "linux-x86-64, windows-x86-64 or linux-aarch64");
  std::string& device = options.target.device;
  if (options.target.backend != "cpu") return;
  if (device.empty()) device = architecture == "x86-64" ? "x86-64-v3" : architecture;
  std::vector<std::string> all = options.levels;
  if (all.empty()) all.push_back(device);
  for (const std::string& each : all) {
    if (!each.starts_with(architecture)) refuse_option("cpu", each, fmt::format("a processor of {}", value));
  }
}

}  // namespace ingot::core
