// SPDX-License-Identifier: Apache-2.0
#include "runtime/loaded_backends.h"

#include <algorithm>
#include <set>

#include <fmt/core.h>

#include "support/error.h"

namespace ingot::core {
namespace {

void collect_backends(const Program& program, std::set<std::string>& names) {
  for (const Step& step : program.steps) {
    if (const auto* kernel = step.as<KernelStep>()) names.insert(kernel->backend);
  }
  for (const Program& nested : program.nested) collect_backends(nested, names);
}

const Executor& executor_for(const Host& host, const std::string& name, int gpu) {
  if (const Executor* executor = host.find_executor(name)) return executor->on_device(gpu);
  throw UserError(
      "INGOT-U223",
      fmt::format("the engine was built for the backend '{}', which this runtime does not have", name),
      "build the engine for a backend that runs here, such as cpu");
}

}  // namespace

uint32_t LoadedBackends::position(std::string_view name) const {
  const auto found = std::ranges::find(all, name, &LoadedBackend::name);
  return found == all.end() ? kNoId : static_cast<uint32_t>(found - all.begin());
}

std::vector<std::unique_ptr<Queue>> open_queues(const LoadedBackends& backends,
                                                const MemoryAllocator* allocator) {
  std::vector<std::unique_ptr<Queue>> queues;
  for (const LoadedBackend& backend : backends.all) queues.push_back(backend.executor->open_queue(allocator));
  return queues;
}

LoadedBackends load_backends(const EngineData& data, const EngineFile* file, const Host& host, int gpu) {
  std::set<std::string> names(data.devices.begin(), data.devices.end());
  collect_backends(data.init, names);
  collect_backends(data.main, names);
  LoadedBackends backends{.all = {}, .gpu = gpu, .memories = {}};
  for (const std::string& name : names) {
    const Executor& executor = executor_for(host, name, gpu);
    backends.all.push_back({name, &executor, executor.load(data, file)});
  }
  backends.memories = {nullptr};
  for (const std::string& device : data.devices)
    backends.memories.push_back(executor_for(host, device, gpu).memory());
  return backends;
}

}  // namespace ingot::core
