// SPDX-License-Identifier: Apache-2.0
// Converters of calls with a complex operand, result or dtype.
#pragma once

#include <string_view>

#include "importers/aten/converters/converters.h"

namespace ingot::core::aten {

bool is_complex_call(const Graph& graph, const Node& node);
bool is_complex_call(const Scope& scope, const Node& node);
const Converter* find_complex_converter(std::string_view target);  // null if there is none

}  // namespace ingot::core::aten
