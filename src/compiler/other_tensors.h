// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <vector>

#include "engine/engine_data.h"
#include "importers/aten/imported.h"
#include "importers/aten/program/aten_graph.h"

namespace ingot::core {

// The tensors of a program that are not among the sources of its engine, in the order of their names.
std::vector<OtherTensor> other_tensors(const aten::Program& program, const aten::Imported& model,
                                       std::span<const SourceWeight> sources);

}  // namespace ingot::core
