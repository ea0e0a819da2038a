// SPDX-License-Identifier: Apache-2.0
// Values for trial runs of kernels.
#pragma once

#include <vector>

#include "loops/kernel.h"
#include "runtime/run_call.h"
#include "types/tensor.h"

namespace ingot::core {

// The storage of one buffer between two guards, which must not change.
class TrialBuffer {
 public:
  TrialBuffer(const TensorType& type, const SymbolValues& symbols);  // filled with a pattern
  std::byte* data() { return bytes_.data() + offset_; }
  const std::byte* data() const { return bytes_.data() + offset_; }
  size_t size() const { return size_; }
  DType dtype() const { return dtype_; }
  int64_t elements() const { return elements_; }
  HostBuffer memory() { return {bytes_, offset_}; }  // guards included
  TensorView view() { return {data(), dtype_, {elements_}, {1}}; }
  bool guards_hold() const;
  TrialBuffer(const TrialBuffer& other);

 private:
  static constexpr size_t kGuard = 128;
  void align();
  std::vector<std::byte> bytes_;
  size_t offset_ = 0, size_;
  DType dtype_;
  int64_t elements_;
};

enum class TrialData {
  kRandom,   // floats in -2..2, integers counting up from 0
  kSpecial,  // with many signed zeros, infinities, NaN and denormals
  kRare,     // with few of these: for kernels that reduce
};

// Values of operand `number`; deterministic. `distinct`: integers do not repeat.
void fill(TrialBuffer& buffer, TrialData data, size_t number, bool distinct);

// Moves floats by some units in the last place: results that change are badly conditioned.
void nudge(TrialBuffer& buffer, bool up);

}  // namespace ingot::core
