// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ir/attribute.h"

namespace ingot::core::ops {

struct WinogradInput {
  std::vector<int64_t> padding;  // on both sides of height and width
  static constexpr auto fields() { return std::tuple{Field{"padding", &WinogradInput::padding}}; }
};

}  // namespace ingot::core::ops
