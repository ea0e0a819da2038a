// SPDX-License-Identifier: Apache-2.0
// Hand-written C++ for operators that Loop IR cannot express. Called by name, from `evaluate` and the
// runtime.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>

#include "types/plain_value.h"
#include "types/tensor.h"

namespace ingot::core {

class ThreadPool;
struct BoundGroups;

// Memory that a routine works in, its own until it returns.
struct WorkingMemory {
  // Aligned to 64 bytes, not initialized; a further call takes back what was reserved before. DeviceError if
  // there is none left.
  std::byte* (*reserve)(void* user, size_t bytes);
  void* user;
};

struct RoutineCall {
  std::span<const TensorView> inputs;
  std::span<const TensorView> outputs;     // allocated, dense row-major
  std::span<const NamedValue> attributes;  // of the operator, in the order of its record
  ThreadPool* pool = nullptr;              // null: run on the caller
  const WorkingMemory* memory = nullptr;   // null: the system's
  const BoundGroups* groups = nullptr;     // of the context; null: there are none
};

struct Routine {
  std::string_view name;
  void (*run)(const RoutineCall& call);  // throws UserError on bad values
};

}  // namespace ingot::core
