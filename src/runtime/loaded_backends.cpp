// SPDX-License-Identifier: Apache-2.0
#include "runtime/loaded_backends.h"

#include <algorithm>
#include <map>

#include <fmt/core.h>

#include "support/error.h"

namespace ingot::core {
namespace {

// By their names, each with the first step that it runs.
using UsedBackends = std::map<std::string, const Step*>;

void collect_backends(const Program& program, UsedBackends& used) {
  for (const Step& step : program.steps) {
    if (const auto* kernel = step.as<KernelStep>()) used.try_emplace(kernel->backend, &step);
  }
  for (const Program& nested : program.nested) collect_backends(nested, used);
}

// Where several backends run an engine: what is lost without this one.
[[noreturn]] void fail_for(const Step& step, const EngineData& data, const std::string& backend,
                           const UserError& error) {
  ErrorDetails details = error.details();
  details.message += fmt::format("; '{}' runs '{}', among other steps", backend, step.name);
  if (!step.nodes.empty() && step.nodes[0] < data.nodes.size()) {
    details.node = data.nodes[step.nodes[0]].name;
    details.source_line = data.nodes[step.nodes[0]].source;
  }
  throw UserError(std::move(details));
}

LoadedBackend load_backend(const std::string& name, const Executor& executor, const EngineData& data,
                           const EngineFile* file, const Step* first, bool is_alone) {
  try {
    return {name, &executor, executor.load(data, file)};
  } catch (const UserError& error) {
    if (is_alone || first == nullptr) throw;
    fail_for(*first, data, name, error);
  }
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
  UsedBackends used;
  collect_backends(data.main, used);
  collect_backends(data.init, used);
  for (const std::string& device : data.devices) used.try_emplace(device, nullptr);
  LoadedBackends backends{.all = {}, .gpu = gpu, .memories = {}};
  for (const auto& [name, first] : used)
    backends.all.push_back(
        load_backend(name, executor_for(host, name, gpu), data, file, first, used.size() == 1));
  backends.memories = {nullptr};
  for (const std::string& device : data.devices)
    backends.memories.push_back(executor_for(host, device, gpu).memory());
  return backends;
}

}  // namespace ingot::core
