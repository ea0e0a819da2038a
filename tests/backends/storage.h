// SPDX-License-Identifier: Apache-2.0
// Random data for a kernel's buffers, and the comparison of two backends' results.
#pragma once

#include <string>
#include <vector>

#include "loops/kernel.h"
#include "types/tensor.h"

namespace ingot::core::test {

struct Check {
  double relative = 1e-6;     // tolerance of floating-point results
  double low = -2, high = 2;  // of random inputs; integers inclusive
  uint64_t seed = 1;
};

// The storage of a buffer as one flat tensor, between two guards that must stay as they are.
struct Storage {
  static constexpr size_t kGuard = 192;
  std::vector<std::byte> bytes;
  DType dtype;
  int64_t elements;
  size_t size() const { return bytes.size() - 2 * kGuard; }
  std::byte* data() { return bytes.data() + kGuard; }
  TensorView view() { return {data(), dtype, {elements}, {1}}; }
  bool guards_hold() const;
};

// One per buffer of the kernel: random, or zero if it is only written. `operands`, if any, are the values of
// the first buffers.
std::vector<Storage> make_storages(const loops::Kernel& kernel, const SymbolValues& symbols,
                                   const Check& check, const std::vector<Tensor>& operands);

// The first element that differs, or "".
std::string difference(Storage& expected, Storage& got, const Check& check);

}  // namespace ingot::core::test
