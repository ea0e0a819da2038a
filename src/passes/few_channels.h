// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ops/convolution.h"
#include "ops/ops.h"

namespace ingot::core {

// Whether the node convolves images, [N, C, H, W], of so few channels that pixels of a window may become
// channels.
inline bool convolves_few_channels(const Node& node) {
  constexpr size_t kRank = 4;
  constexpr int64_t kMostChannels = 4;
  if (node.op != &ops::convolution) return false;
  const Shape& image = node.operand_type(0).shape;
  const auto channels = image[1].constant();
  return image.size() == kRank && node.attributes<ops::Convolution>().groups == 1 && channels &&
         *channels <= kMostChannels;
}

}  // namespace ingot::core
