// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "backends/backend.h"

namespace ingot::core::fake {

// Lowers every node to the text of its Loop IR, for a device that stands in for a GPU in tests
// (docs/design/031-fake-device.md).
const Backend& backend();

}  // namespace ingot::core::fake
