// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "importers/onnx/model.h"
#include "ir/graph.h"

namespace ingot::core::onnx {

// The line of the model that an exporter left with the node: the innermost of its stack outside of torch.
SourceLine source_of(const NodeDef& node);

}  // namespace ingot::core::onnx
