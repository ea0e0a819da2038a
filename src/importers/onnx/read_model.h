// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "importers/onnx/model.h"

namespace ingot::core::onnx {

// The fields of a serialized ModelProto that the importer reads; others are skipped. Values of tensors stay
// in `file`. UserError INGOT-U540 for other bytes.
Model read_model(Bytes file);

}  // namespace ingot::core::onnx
