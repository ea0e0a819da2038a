// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "engine/program.h"

namespace ingot::core {

inline Step copy_step(BufferId from, BufferId to) {
  return {.name = "copy", .action = CopyStep{}, .uses = {{from, true, false}, {to, false, true}}};
}

}  // namespace ingot::core
