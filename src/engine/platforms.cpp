// SPDX-License-Identifier: Apache-2.0
#include "engine/platforms.h"

#include <algorithm>
#include <iterator>

#include "engine/levels.h"

namespace ingot::core {
namespace {

struct Platform {
  std::string_view name, architecture;
};
constexpr Platform kPlatforms[] = {
    {"linux-x86-64", "x86-64"}, {"windows-x86-64", "x86-64"}, {"linux-aarch64", "aarch64"}};

bool has_code_for_others(const EngineData& engine, const Platform& platform) {
  return std::ranges::any_of(engine.images, [&](const Image& image) {
    return backend_of(image) == "cpu" && !device_of(image).starts_with(platform.architecture);
  });
}

}  // namespace

std::vector<std::string> platforms_of(const EngineData& engine) {
  std::vector<std::string> names;
  for (const Platform& platform : kPlatforms) {
    const auto serves = [&](const EngineData* level) { return !has_code_for_others(*level, platform); };
    if (std::ranges::any_of(levels_of(engine), serves)) names.emplace_back(platform.name);
  }
  return names;
}

std::string_view architecture_of(std::string_view platform) {
  const auto* found = std::ranges::find(kPlatforms, platform, &Platform::name);
  return found == std::end(kPlatforms) ? "" : found->architecture;
}

}  // namespace ingot::core
