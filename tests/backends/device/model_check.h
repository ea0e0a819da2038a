// SPDX-License-Identifier: Apache-2.0
// A model on the device beside the interpreter.
#pragma once

#include <string>

#include "importers/aten/imported.h"

namespace ingot::core::test {

// What is wrong with the results of an engine of this level, called with numbers made for the model's inputs:
// enqueued, captured and replayed. "" if nothing is. UnsupportedError if an engine does not run it.
std::string check_on_device(const aten::Imported& model, int level);

}  // namespace ingot::core::test
