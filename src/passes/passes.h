// SPDX-License-Identifier: Apache-2.0
// The passes for every target, in the order of pipeline.cpp. Each takes a graph and returns it rewritten.
#pragma once

#include "ir/graph.h"

namespace ingot::core {}  // namespace ingot::core
