// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>

#include "ir/graph.h"

namespace ingot::core::cuda {

// A second product of the same rows by a weight of the same shape (may_be_twins), which the epilogue of the
// first reads.
struct Twin {
  const Node* node = nullptr;  // null: there is none
  size_t buffer = 0;           // of the epilogue, which stands for the twin's result

  explicit operator bool() const { return node != nullptr; }
};

// operands_of(x, product): x with that product's weight as b.
std::string operands_of_twins(const Twin& twin);

}  // namespace ingot::core::cuda
