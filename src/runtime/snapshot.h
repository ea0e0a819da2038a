// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "runtime/engine.h"

namespace ingot::core {

// What the engine holds now: its own data until a refit, then with the weights of the last one, in the form
// that it came with.
std::shared_ptr<const EngineData> current_data(const std::shared_ptr<const Engine>& engine);

// What a file of the engine has to hold. Waits until all weights were verified.
std::shared_ptr<const EngineData> snapshot(const std::shared_ptr<const Engine>& engine);

}  // namespace ingot::core
