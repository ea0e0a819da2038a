// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "engine/engine_data.h"
#include "exporters/onnx/onnx_model.h"

namespace ingot::core::exported {

// The programs of an engine: a node per step, with the operators that it computes, their names and lines.
// Buffers that steps write again become further values; parts of a buffer are told by nodes `view` (read) and
// `parts` (written). `main` is the model's graph, `init` a function of kProgramDomain.
OnnxModel export_engine(const EngineData& engine);

}  // namespace ingot::core::exported
