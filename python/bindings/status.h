// SPDX-License-Identifier: Apache-2.0
// Statuses of the C API as Python exceptions of ingot.errors.
#pragma once

#include <nanobind/nanobind.h>

#include <string>
#include <utility>

#include "ingot/ingot.h"

namespace ingot::python {

namespace nb = nanobind;

// Raises the Python exception of a failed call and frees the status; does nothing on success.
void check(ingot_status* status);

// Returns the content of a text and frees it.
std::string take_text(ingot_text* text);

}  // namespace ingot::python
