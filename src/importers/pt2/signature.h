// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "importers/pt2/payloads.h"
#include "importers/pt2/value_scope.h"

namespace ingot::core::pt2 {

// The folders of an archive that contain values.
struct ProgramPayloads {
  Payloads weights;    // parameters and persistent buffers
  Payloads constants;  // lifted constants and other buffers
};

// The graph's inputs and their roles; to be read before the nodes.
// UnsupportedError INGOT-N506: custom objects and effect tokens.
void read_inputs(Json graph_module, ProgramPayloads& payloads, ValueScope& scope);

// The graph's outputs; to be read after the nodes. UnsupportedError INGOT-N508: losses and gradients.
void read_outputs(Json graph_module, ValueScope& scope);

}  // namespace ingot::core::pt2
