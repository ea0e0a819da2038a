// SPDX-License-Identifier: Apache-2.0
// Guards as torch writes them: Python conditions over L['x'].size()[0], or over symbols.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "importers/aten/program/aten_graph.h"
#include "importers/aten/program/fraction.h"
#include "types/predicate.h"

namespace ingot::core::aten {

// The condition on the sizes of `graph`'s user inputs that `text` states. Quotients are compared exactly.
// UnsupportedError INGOT-N524 for anything else: other functions, strides, values.
Predicate parse_guard(std::string_view text, const Graph& graph);

}  // namespace ingot::core::aten
