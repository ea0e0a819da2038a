// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "backends/backend.h"

namespace ingot::core::null {

// Supports every node and lowers it to steps without code: tests everything from lowering to running without
// a device.
const Backend& backend();

}  // namespace ingot::core::null
