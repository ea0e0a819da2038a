// SPDX-License-Identifier: Apache-2.0
#include "partition/engine_backends.h"

#include <algorithm>

#include <fmt/core.h>

#include "support/error.h"

namespace ingot::core {
namespace {

constexpr std::string_view kHostBackend = "cpu";
constexpr int kUntimedLevel = 3;

}  // namespace

const Backend& find_backend(std::span<const Backend* const> backends, std::string_view name) {
  std::string known;
  for (const Backend* backend : backends) {
    if (backend->name() == name) return *backend;
    known += fmt::format("{}\"{}\"", known.empty() ? "" : ", ", backend->name());
  }
  const char* why = name == kHostBackend ? "CPUs need a build with LLVM (INGOT_LLVM=ON); " : "";
  throw UserError("INGOT-U003", fmt::format("this build of Ingot has no backend \"{}\"", name),
                  fmt::format("{}backends here: {}", why, known.empty() ? "none" : known));
}

const Backend* host_backend(std::span<const Backend* const> backends) {
  const auto found = std::ranges::find(backends, kHostBackend, &Backend::name);
  return found == backends.end() ? nullptr : *found;
}

EngineBackends::EngineBackends(std::span<const Backend* const> backends, const Target& target)
    : EngineBackends(find_backend(backends, target.backend), target) {
  const Backend* host = host_backend(backends);
  const bool has_device = device_.backend->place().kind == Place::Kind::kDevice;
  if (!has_device || target.host_device.empty() || host == nullptr) return;
  host_ = {host, target};
  host_.target.backend = kHostBackend;
  host_.target.device = target.host_device;
  host_.target.level = std::min(target.level, kUntimedLevel);  // tactics of the device are timed
}

Side EngineBackends::side_of(std::string_view name) const {
  if (name == device_.backend->name()) return Side::kDevice;
  return are_two() && name == host_.backend->name() ? Side::kHost : Side::kAny;
}

}  // namespace ingot::core
