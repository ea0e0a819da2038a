// SPDX-License-Identifier: Apache-2.0
// Transposed convolutions whose windows do not overlap: each element of the result is an element of a
// convolution with a 1x1 window, whose channels are (tap, channel). Nothing is added up after it, so that the
// result is rounded or quantized before its elements are moved.
#pragma once

#include "ir/graph.h"

namespace ingot::core {

// Strides as large as the window, without padding and groups; the weight's shape is known.
bool has_separate_windows(const Node& transposed_convolution);

// [C, O, *window] as [taps * O, C, 1...]: the weight of the convolution.
Value* weight_of_windows(Graph& graph, Value* weight);
// The result with that weight.
Value* convolve_windows(Graph& graph, const Node& transposed_convolution, Value* weight);

// Quantization of a fold that only moves elements: the fold of the numbers. Null if it does more, if elements
// have scales of their own, or if others read the fold.
Value* quantize_before_rearrangement(Graph& graph, const Node& quantization);

}  // namespace ingot::core
