// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>

#include "types/tensor.h"

namespace ingot::core {

struct NamedTensor {
  std::string name;
  TensorView data;                    // may be strided
  std::shared_ptr<const void> owner;  // keeps `data` alive
};

}  // namespace ingot::core
