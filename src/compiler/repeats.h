// SPDX-License-Identifier: Apache-2.0
// Layers of a model that were compiled once: "12 layers of encoder.layer, 1 distinct".
#pragma once

#include <span>
#include <string>
#include <vector>

#include "plan/plan_input.h"

namespace ingot::core {

struct Repeats {
  std::string path;  // of the list of modules in the model; "": the model is the list
  size_t layers = 0, distinct = 0;
};

// The lists of modules in the model, as far as its nodes know their modules: two layers are equal if their
// steps run the same kernels in the same order.
std::vector<Repeats> find_repeats(std::span<const NodeStep> steps);

}  // namespace ingot::core
