// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "backends/backend.h"

namespace ingot::core::null {

// Takes every node and makes steps without code: checks everything from lowering to running without a device.
const Backend& backend();

}  // namespace ingot::core::null
