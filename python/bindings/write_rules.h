// SPDX-License-Identifier: Apache-2.0
// Which tensors torch lets be written: engines, which write memory past torch, keep to its rules. These are
// for processes with torch, and objects of it.
#pragma once

#include <nanobind/nanobind.h>

namespace ingot::python {

namespace nb = nanobind;

// What torch's modes forbid to write at present: leaves of autograd that require gradients, and tensors that
// were made in its inference mode.
struct WriteRules {
  bool fixes_leaves = false, fixes_inference = false;
};
WriteRules write_rules();
bool is_inference(nb::handle object);
// For each call: raises ingot.UserError if torch would not write such an argument.
void check_writable(nb::handle object, bool is_inference, const WriteRules& rules, const char* what);

}  // namespace ingot::python
