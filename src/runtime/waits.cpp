// SPDX-License-Identifier: Apache-2.0
#include "runtime/waits.h"

#include "runtime/step_errors.h"

namespace ingot::core {

void wait_for(const EngineData& data, const Program& program, Queue& queue) {
  const auto failure = queue.wait();
  if (failure) [[unlikely]]
    fail_launch(data, program, *failure);
}

void wait_for_devices(const RunResources& resources) {
  for (const std::string& device : resources.data.devices)
    wait_for(resources.data, resources.program, *resources.queues[resources.backends.position(device)]);
}

void follow_live(const RunResources& resources) {
  for (const std::string& device : resources.data.devices)
    resources.queues[resources.backends.position(device)]->follow_live(resources.stream);
}

}  // namespace ingot::core
