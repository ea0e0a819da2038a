// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ir/attribute.h"

namespace ingot::core::ops {

struct Rnn {
  bool relu = false;  // otherwise tanh
  static constexpr auto fields() { return std::tuple{Field{"relu", &Rnn::relu}}; }
};

}  // namespace ingot::core::ops
