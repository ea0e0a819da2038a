// SPDX-License-Identifier: Apache-2.0
// Functions of torch that are looked up once, by the caller's static variable, and called often.
#pragma once

#include <nanobind/nanobind.h>

#include <initializer_list>

namespace ingot::python {

namespace nb = nanobind;

// What this path below torch._C leads to; null without torch, or where this version has no such name.
PyObject* find_in_torch(std::initializer_list<const char*> path);

// The answer of a method of torch's tensors without arguments. Not looked up at the object: that takes longer
// than the answer.
bool answers_yes(nb::handle object, PyObject* method);

}  // namespace ingot::python
