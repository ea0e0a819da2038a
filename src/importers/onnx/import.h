// SPDX-License-Identifier: Apache-2.0
// ONNX models, imported into a Graph of our ops by one converter per operator.
#pragma once

#include <string_view>

#include "importers/aten/imported.h"
#include "importers/aten/program/aten_graph.h"
#include "importers/onnx/load.h"

namespace ingot::core::onnx {

// The model's call: names and types of inputs, names of outputs, initializers; no nodes.
aten::Program describe(const LoadedModel& model);

// UnsupportedError INGOT-N54x that names the node and its operator, UserError INGOT-U543 for models that
// break the rules of ONNX.
aten::Imported import_model(const LoadedModel& model, bool weights_are_constants);

// Whether an operator of ONNX ("Gemm") has a converter, which may still reject what a node asks of it.
bool has_importer(std::string_view name);

}  // namespace ingot::core::onnx
