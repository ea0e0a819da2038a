// SPDX-License-Identifier: Apache-2.0
// Hand-written C++ for operators that Loop IR cannot express. Called by name, from `evaluate` and the
// runtime.
#pragma once

#include <span>
#include <string_view>

#include "types/plain_value.h"
#include "types/tensor.h"

namespace ingot::core {

class ThreadPool;

struct RoutineCall {
  std::span<const TensorView> inputs;
  std::span<const TensorView> outputs;     // allocated, dense row-major
  std::span<const NamedValue> attributes;  // of the operator, in the order of its record
  ThreadPool* pool = nullptr;              // null: run on the caller
};

struct Routine {
  std::string_view name;
  void (*run)(const RoutineCall& call);  // throws UserError on bad values
};

}  // namespace ingot::core
