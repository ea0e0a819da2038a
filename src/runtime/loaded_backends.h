// SPDX-License-Identifier: Apache-2.0
// The backends that an engine needs, with its kernel binaries loaded. Immutable, shared by contexts.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "backends/executor.h"
#include "runtime/host.h"

namespace ingot::core {

struct LoadedBackend {
  std::string name;
  const Executor* executor;
  std::shared_ptr<const LoadedImages> images;
};

struct LoadedBackends {
  std::vector<LoadedBackend> all;
  int gpu = 0;                          // of this machine, for backends that have several devices
  std::vector<DeviceMemory*> memories;  // one per place, by place_number; null: host memory

  uint32_t position(std::string_view name) const;  // kNoId if absent
};

// One queue per backend, for one context.
std::vector<std::unique_ptr<Queue>> open_queues(const LoadedBackends& backends,
                                                const MemoryAllocator* allocator = nullptr);

// Loads the kernel binaries of all backends that the programs name. UserError INGOT-U223 if this runtime
// lacks a backend, U22x from the backend; DeviceError INGOT-D402 if the engine is for GPUs and there is no
// `gpu`.
LoadedBackends load_backends(const EngineData& data, const EngineFile* file, const Host& host, int gpu = 0);

}  // namespace ingot::core
