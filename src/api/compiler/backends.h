// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>

#include "backends/backend.h"

namespace ingot::core::api {

// Every compile backend that is linked into libingot.
std::span<const Backend* const> backends();

}  // namespace ingot::core::api
