// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "importers/onnx/converters/converters.h"

namespace ingot::core::onnx {

// Computes a node on sizes: a result that is known as expressions over symbols, or nullopt. The operators are
// those of which exporters build chains from Shape to Reshape.
std::optional<Sizes> fold_sizes(Call& call, const Converter& converter);

}  // namespace ingot::core::onnx
