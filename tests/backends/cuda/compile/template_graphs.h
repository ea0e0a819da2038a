// SPDX-License-Identifier: Apache-2.0
// Contractions and attention that have kernel templates.
#pragma once

#include <cstdint>
#include <ostream>
#include <span>
#include <vector>

#include "types/dim.h"

namespace ingot::core::cuda {

struct Template {
  const char* name;
  const char* graph;  // with HALF for a dtype; its last node is the one that is tried
  SymbolValues symbols = {};
  int64_t shift = 0;                      // elements that operands lie beside an aligned address
  std::vector<const char*> layouts = {};  // of the operands, and then of the result; of the others row-major
};

void PrintTo(const Template& test, std::ostream* out);

std::span<const Template> templates();
// Convolutions that have none, but that cuDNN computes.
std::span<const Template> library_convolution_graphs();

}  // namespace ingot::core::cuda
