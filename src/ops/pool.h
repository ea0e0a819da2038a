// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ir/attribute.h"

namespace ingot::core::ops {

struct MaxPool {  // one entry per spatial dim
  std::vector<int64_t> kernel, stride, padding, dilation;
  bool ceil_mode = false;
  static constexpr auto fields() {
    return std::tuple{Field{"kernel", &MaxPool::kernel}, Field{"stride", &MaxPool::stride},
                      Field{"padding", &MaxPool::padding}, Field{"dilation", &MaxPool::dilation},
                      Field{"ceil_mode", &MaxPool::ceil_mode}};
  }
};

struct AveragePool {  // divisor 0: the number of elements in the window
  std::vector<int64_t> kernel, stride, padding;
  bool ceil_mode = false;
  bool count_padding = true;
  int64_t divisor = 0;
  static constexpr auto fields() {
    return std::tuple{Field{"kernel", &AveragePool::kernel},
                      Field{"stride", &AveragePool::stride},
                      Field{"padding", &AveragePool::padding},
                      Field{"ceil_mode", &AveragePool::ceil_mode},
                      Field{"count_padding", &AveragePool::count_padding},
                      Field{"divisor", &AveragePool::divisor}};
  }
};

struct AdaptivePool {
  std::vector<Dim> size;  // of the result, one entry per spatial dim
  static constexpr auto fields() { return std::tuple{Field{"size", &AdaptivePool::size}}; }
};

}  // namespace ingot::core::ops
