// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "importers/aten/program/aten_graph.h"

namespace ingot::core::aten {

// Throws UnsupportedError INGOT-N520: this call cannot be imported.
[[noreturn]] void refuse_node(const Node& node, const std::string& reason);

std::string source_text(const Source& source);  // "model.py:12 in forward", "" if unknown

}  // namespace ingot::core::aten
