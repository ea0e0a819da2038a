// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "backends/compile.h"

namespace ingot::core::cpu {

// What the passes ask when they grow a region around `root`; see Backend.
bool may_take_consumer(const Node& root, const Node& consumer, const Target& target);
bool may_take_producer(const Node& root, const Node& producer, const Target& target);

}  // namespace ingot::core::cpu
