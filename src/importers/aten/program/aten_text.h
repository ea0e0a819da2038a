// SPDX-License-Identifier: Apache-2.0
// ATen programs as text for people: messages, tests and inspection. There is no parser.
#pragma once

#include <string>

#include "importers/aten/program/aten_graph.h"

namespace ingot::core::aten {

std::string to_string(const Source& source);      // "model.py:12 in forward", "" if unknown
std::string to_string(const TensorMeta& meta);    // "f32[B,8]"; with strides "{1, 8}" unless row-major
std::string to_string(const Argument& argument);  // values by number: "%3"
std::string to_string(const Program& program);

}  // namespace ingot::core::aten
