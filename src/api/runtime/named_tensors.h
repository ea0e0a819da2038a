// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "ingot/ingot.h"
#include "types/named_tensor.h"

struct ingot_tensors {
  explicit ingot_tensors(std::vector<ingot::core::NamedTensor> content);

  std::vector<ingot::core::NamedTensor> tensors;
  std::vector<ingot_tensor> values;  // pointing into `tensors`
};
