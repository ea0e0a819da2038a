// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "runtime/engine.h"

namespace ingot::core {

// The current content of the engine: its own data or, after a refit, with the weights of the last one, in its
// original form.
std::shared_ptr<const EngineData> current_data(const std::shared_ptr<const Engine>& engine);

// The content for a file of the engine. Waits until all weights are verified.
std::shared_ptr<const EngineData> snapshot(const std::shared_ptr<const Engine>& engine);

}  // namespace ingot::core
