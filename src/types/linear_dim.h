// SPDX-License-Identifier: Apache-2.0
// Dims from whose size their one symbol follows: inputs bind symbols by them.
#pragma once

#include <optional>
#include <string>

#include "types/dim.h"

namespace ingot::core {

// factor * symbol + offset, where the factor is positive.
struct LinearDim {
  std::string symbol;
  int64_t factor = 1, offset = 0;

  // The symbol's value in a dim of that size; rounded down if there is none.
  int64_t symbol_of(int64_t size) const;
  int64_t size_of(int64_t symbol) const;
  // What the symbol is, in terms of what is called that size.
  std::string spelled(std::string size) const;
  bool operator==(const LinearDim&) const = default;
};

std::optional<LinearDim> linear_dim(const Dim& dim);

}  // namespace ingot::core
