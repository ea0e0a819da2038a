// SPDX-License-Identifier: Apache-2.0
#include "runtime/prepare.h"

#include <algorithm>

#include "engine/program_slice.h"
#include "runtime/initialize.h"

namespace ingot::core {

bool can_run(const EngineData& data, const Host& host, int gpu) {
  const bool has_devices = std::ranges::all_of(data.devices, [&](const std::string& device) {
    const Executor* executor = host.find_executor(device);
    return executor != nullptr && executor->on_device(gpu).is_present();
  });
  return has_devices && std::ranges::all_of(data.images, [&](const Image& image) {
           const Executor* executor = host.find_executor(backend_of(image));
           return executor != nullptr && executor->on_device(gpu).missing(image).empty();
         });
}

void prepare_weights(EngineData& data, Host& host, int gpu) {
  const auto weights = stored_weights(data);
  if (needs_init(data, *weights)) {
    const LoadedBackends backends = load_backends(data, nullptr, host, gpu);
    run_init(data, make_executable(data.init, data, backends), all_outputs(data.init), backends, host,
             *weights);
  }
  for (size_t id = 0; id < data.weights.size(); ++id) {
    if (data.weights[id].data == nullptr) data.weights[id].data = weights->data[id];
  }
  data.weights_form = WeightsForm::kPrepared;
}

}  // namespace ingot::core
