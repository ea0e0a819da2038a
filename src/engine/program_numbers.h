// SPDX-License-Identifier: Apache-2.0
// The numbers by which engine.fbs names the kinds of buffers and steps.
#pragma once

#include <cstdint>

namespace ingot::core {

enum class StorageNumber : uint8_t { kInput, kOutput, kWeight, kConstant, kState, kArena, kAlias, kDynamic };
enum class StepNumber : uint8_t { kKernel, kRoutine, kCopy, kProgram };
enum class ControlNumber : uint8_t { kBranch, kLoop };  // of StepNumber::kProgram

}  // namespace ingot::core
