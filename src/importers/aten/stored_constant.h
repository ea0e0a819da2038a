// SPDX-License-Identifier: Apache-2.0
// Tensors that a program stores.
#pragma once

#include "importers/aten/program/aten_graph.h"
#include "ir/graph.h"

namespace ingot::core::aten {

OwnedView as_pairs(OwnedView value);  // complex elements as two real ones; others as they are

core::Value* add_constant(core::Graph& graph, const OwnedView& value);  // complex ones as pairs

}  // namespace ingot::core::aten
