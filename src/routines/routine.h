// SPDX-License-Identifier: Apache-2.0
// Hand-written C++ for operators that Loop IR cannot express. Called by name, from `evaluate` and the
// runtime.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "types/tensor.h"

namespace ingot::core {

class ThreadPool;

struct RoutineCall {
  std::span<const TensorView> inputs;
  std::span<const TensorView> outputs;  // allocated, dense row-major
  std::string_view attributes;          // the node's attributes in text form
  ThreadPool* pool = nullptr;           // null: run on the caller
};

struct Routine {
  std::string_view name;
  void (*run)(const RoutineCall& call);  // throws UserError on bad values
};

std::span<const Routine> all_routines();
const Routine* find_routine(std::string_view name);

}  // namespace ingot::core
