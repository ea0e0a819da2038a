// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "runtime/engine.h"

namespace ingot::core {

// What a file of the engine has to hold: its data, with the weights that it has now, in the form that it came
// with. Waits until all weights were verified.
std::shared_ptr<const EngineData> snapshot(const std::shared_ptr<const Engine>& engine);

}  // namespace ingot::core
