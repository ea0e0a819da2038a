// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "types/dim.h"

namespace ingot::core {

using ImageId = uint32_t;
constexpr uint32_t kNoId = UINT32_MAX;

// How a kernel is called. The meaning of `sizes` and `constants` is private to the backend: its executor
// checks their count and range when an engine is loaded; neutral code only evaluates the sizes, once per
// shape.
struct Launch {
  ImageId image = kNoId;
  std::vector<Dim> symbols;  // values of the kernel's symbol arguments, in order
  std::vector<Dim> sizes;
  std::vector<int64_t> constants;
  bool operator==(const Launch&) const = default;
};

}  // namespace ingot::core
