// SPDX-License-Identifier: Apache-2.0
// The look at the watched weights that every call takes: a few loads per weight, from addresses that are
// remembered, so that no load waits for another. Cache lines decide what it costs: about eight per weight.
#pragma once

#include <nanobind/nanobind.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "torch_tensors.h"
#include "weight_pieces.h"

namespace ingot::python {

// What torch says of a weight.
struct WeightState {
  int64_t version = -1;  // -1: it has none
  const void* data = nullptr;
  size_t element = 0, bytes = 0;  // of an element; between the first and the last one, 0 on a GPU
  bool on_host = false;
  bool operator==(const WeightState&) const = default;
};

// One weight as it was seen last.
struct WeightGlance {
  const PyObject* object = nullptr;  // null: every call has to look at it
  TorchTensors::Parts parts;
  int32_t position = -1;          // among a call's arguments; -1: not passed at calls
  uint16_t pairs = 0, width = 0;  // of pieces, as in PieceLayout; 0 on a GPU: none is compared
  const std::byte *low = nullptr, *high = nullptr;  // the outermost pieces
  ptrdiff_t distance = 0;
  WeightPieces outermost;
};

class WeightGlances {
 public:
  // `most`: pairs of pieces that are compared per weight. Without `torch` nothing is remembered.
  WeightGlances(std::optional<TorchTensors> torch, size_t most) : torch_(std::move(torch)), most_(most) {}

  void add(int position);  // one more weight, at this position among a call's arguments, or -1
  // Remembers a weight that was just looked at; not if its parts do not agree with what torch says of it.
  // `pieces`: `most` pairs, as they were seen.
  void remember(size_t index, nb::handle tensor, const WeightState& seen,
                std::span<const WeightPieces> pieces);

  void forget(size_t index) { rows_[index].object = nullptr; }

  // The index of the first weight, from `begin` on, that may have changed; the count if there is none. Sizes
  // are those of the last look: torch.compile's guards require it. `arguments` has all positions.
  size_t find_changed(size_t begin, PyObject* const* arguments) const;

 private:
  std::optional<TorchTensors> torch_;
  size_t most_;
  std::vector<WeightGlance> rows_;
  std::vector<WeightPieces> inner_;  // `most_` - 1 per weight
};

}  // namespace ingot::python
