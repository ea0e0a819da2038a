// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "engine/engine_file.h"

namespace ingot::core::fuzz {

// Loads an engine of the null backend and runs it twice on zeros of small sizes; returns at once where its
// programs may take much memory or do not end. Throws what the runtime rejects.
void run_engine(const std::shared_ptr<const EngineFile>& file);

}  // namespace ingot::core::fuzz
