// SPDX-License-Identifier: Apache-2.0
// The arguments of a run: which inputs or states they are, their checks, and the sizes that they bind.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "engine/engine_data.h"
#include "runtime/executable.h"
#include "runtime/groups.h"

namespace ingot::core {

// An argument of a run: borrowed memory. Inputs whose strides are not dense row-major are copied first.
struct Argument {
  void* data;
  DType dtype;
  int32_t rank;
  const int64_t* shape;
  const int64_t* strides;  // in elements; null: row-major
  bool on_device = false;  // in memory of a GPU
  int32_t gpu = 0;         // which
};

// One tensor argument in the order of the call.
struct ArgumentSlot {
  const Port* port;
  bool is_state = false;  // the caller's tensor is the state, updated in place
  uint32_t index = 0;     // of the input or state
};

// Tensor arguments in the order of the signature: inputs of the program, and states bound to arguments.
std::vector<ArgumentSlot> argument_slots(const EngineData& data);

// Arguments as the program has them: complex tensors as pairs of reals, without a copy.
class PairedArguments {
 public:
  explicit PairedArguments(std::span<const ArgumentSlot> slots);
  // Valid until the next call, and as long as `given`, which have been checked.
  std::span<const Argument> view(std::span<const Argument> given);

 private:
  std::vector<const ArgumentSlot*> complex_;  // null: real
  std::vector<Argument> arguments_;           // empty: none is complex
  std::vector<std::vector<int64_t>> sizes_;   // shape and strides of each complex argument
};

// Count, dtypes and ranks, and that what is updated in place shares memory with no other argument. UserError
// INGOT-U300, U301, U302, U314.
void check_arguments(std::span<const ArgumentSlot> slots, std::span<const Argument> arguments);

// Whether the sizes equal `key`; those of a key have been checked.
bool has_sizes(std::span<const Argument> arguments, std::span<const int64_t> key);
std::vector<int64_t> sizes_key(std::span<const Argument> arguments);

// Values of the symbols, one per symbol of `dims`. `groups` have the rank. UserError INGOT-U303 (a size
// differs from the model's), U304 (sizes are inconsistent), U305 (out of range); each names the argument, the
// dim and the range. INGOT-U350 if the rank is not known.
std::vector<int64_t> bind_sizes(const EngineData& data, const DimPool& dims, const BoundGroups& groups,
                                std::span<const ArgumentSlot> slots, std::span<const Argument> arguments);

bool is_dense(const Argument& argument);
TensorView view_of(const Argument& argument);

// "x[4, 8], mask[4]"
std::string describe_sizes(std::span<const ArgumentSlot> slots, std::span<const Argument> inputs);
size_t dense_bytes(const Argument& argument);  // of its values, without gaps

}  // namespace ingot::core
