// SPDX-License-Identifier: Apache-2.0
// Reads tensors and enums of the export schema, whose enum values differ from those of torch's C++ code.
#pragma once

#include <string>

#include "importers/aten/program/aten_graph.h"
#include "importers/files/json.h"
#include "importers/pt2/read_context.h"

namespace ingot::core::pt2 {

DType read_dtype(Json value, const ReadContext& context);                // UnsupportedError INGOT-N504
std::string read_layout(Json value, const ReadContext& context);         // "strided", "sparse_coo" ...
std::string read_memory_format(Json value, const ReadContext& context);  // "channels_last" ...
aten::Device read_device(Json value);

// SymInt: {"as_int": 3} or {"as_expr": {"expr_str": ..., "hint": ...}}. A hint is the symbol's typical value.
Dim read_dim(Json value, ReadContext& context);

aten::TensorMeta read_tensor_meta(Json value,
                                  ReadContext& context);  // UnsupportedError INGOT-N505: not strided

}  // namespace ingot::core::pt2
