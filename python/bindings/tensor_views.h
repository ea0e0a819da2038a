// SPDX-License-Identifier: Apache-2.0
// Views of tensors that calls are passed again and again, such as the caches of a decoder: asking torch for
// each of them takes longer than all else that a call does for an input.
#pragma once

#include <nanobind/nanobind.h>

#include <array>
#include <cstddef>
#include <optional>
#include <vector>

#include "ingot/ingot.h"
#include "torch_tensors.h"

namespace ingot::python {

// The last views of each input: two, since callers often have two sets of buffers that take turns. They hold
// while no byte has changed of what torch keeps of the tensor's sizes, dtype, device, lazy bits and memory.
// Guarded by the GIL.
class TensorViews {
 public:
  struct Known {
    ingot_tensor view{};
    bool is_inference = false;  // of an input that calls write: whether torch made it in its inference mode
  };

  // Null if the input has to be viewed. Valid until the next `remember`; its sizes lie in the tensor.
  const Known* find(size_t input, nb::handle tensor) const;
  // `known`: of the object itself, not of a copy of it. Of an object that is not a tensor of torch nothing is
  // remembered.
  void remember(size_t input, nb::handle tensor, const Known& known);

 private:
  struct Seen {
    nb::object type;  // of the Python object; null: nothing is remembered
    TorchTensors::Contents contents;
    Known known;
  };

  void ask_torch();

  bool has_asked_ = false;
  std::optional<TorchTensors> torch_;      // none: nothing is remembered
  std::vector<std::array<Seen, 2>> seen_;  // of each input, the newest first
};

}  // namespace ingot::python
