// SPDX-License-Identifier: Apache-2.0
#include "runtime/load_images.h"

#include <set>

#include <fmt/core.h>

#include "support/error.h"

namespace ingot::core {
namespace {

void collect_backends(const Program& program, std::set<std::string>& names) {
  for (const Step& step : program.steps) {
    if (step.kind == StepKind::kKernel) names.insert(step.backend);
  }
  for (const Program& nested : program.nested) collect_backends(nested, names);
}

}  // namespace

ImageMap load_images(const EngineData& data, const EngineFile* file, const Host& host) {
  std::set<std::string> names;
  collect_backends(data.init, names);
  collect_backends(data.main, names);
  ImageMap images;
  for (const std::string& name : names) {
    const Executor* executor = host.find_executor(name);
    if (executor == nullptr) {
      throw UserError(
          "INGOT-U223",
          fmt::format("the engine was built for the backend '{}', which this runtime does not have", name),
          "build the engine for a backend that runs here, such as cpu");
    }
    images.emplace(name, executor->load(data, file));
  }
  return images;
}

BackendLookup lookup_in(const ImageMap& images, const Host& host) {
  return {[&images, &host](std::string_view backend) {
    const auto found = images.find(backend);
    invariant(found != images.end(), "the images of a backend were not loaded");
    return std::pair(host.find_executor(backend), static_cast<const LoadedImages*>(found->second.get()));
  }};
}

}  // namespace ingot::core
