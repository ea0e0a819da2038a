// SPDX-License-Identifier: Apache-2.0
#include "runtime/prepare.h"

#include "runtime/initialize.h"
#include "runtime/load_images.h"

namespace ingot::core {

void prepare_weights(EngineData& data, Host& host) {
  const auto weights = stored_weights(data);
  if (needs_init(data, *weights)) {
    const ImageMap images = load_images(data, nullptr, host);
    run_init(data, make_executable(data.init, data, lookup_in(images, host)), host, *weights);
  }
  for (size_t id = 0; id < data.weights.size(); ++id) {
    if (data.weights[id].data == nullptr) data.weights[id].data = weights->data[id];
  }
  data.weights_form = WeightsForm::kPrepared;
}

}  // namespace ingot::core
