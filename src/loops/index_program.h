// SPDX-License-Identifier: Apache-2.0
// Dims compiled for repeated evaluation: symbols become numbered slots.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "types/dim.h"

namespace ingot::core::loops {

// Slot numbers by symbol name, shared by all programs of a kernel.
class Slots {
 public:
  int slot(const std::string& symbol) {
    return numbers_.emplace(symbol, static_cast<int>(numbers_.size())).first->second;
  }
  size_t size() const { return numbers_.size(); }
  const std::map<std::string, int>& numbers() const { return numbers_; }

 private:
  std::map<std::string, int> numbers_;
};

class IndexProgram {
 public:
  IndexProgram(const Dim& dim, Slots& slots) { append(dim, slots); }
  int64_t run(const std::vector<int64_t>& slots) const;

 private:
  struct Step {
    Dim::Kind kind;
    int64_t value = 0;  // of a constant; otherwise the symbol's slot
  };
  void append(const Dim& dim, Slots& slots);

  std::vector<Step> steps_;  // in postfix order
  mutable std::vector<int64_t> stack_;
};

}  // namespace ingot::core::loops
