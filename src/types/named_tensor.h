// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "types/tensor.h"

namespace ingot::core {

struct NamedTensor {
  std::string name;
  OwnedView value;
};

}  // namespace ingot::core
