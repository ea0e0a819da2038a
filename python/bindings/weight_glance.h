// SPDX-License-Identifier: Apache-2.0
// The look at the watched weights that every call takes: a few loads per weight, from addresses that are
// remembered, so that no load waits for another.
#pragma once

#include <nanobind/nanobind.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <utility>
#include <vector>

#include "torch_tensors.h"

namespace ingot::python {

// What torch says of a weight.
struct WeightState {
  int64_t version = -1;  // -1: it has none
  const void* data = nullptr;
  size_t element = 0, bytes = 0;  // of an element; between the first and the last one, 0 on a GPU
  bool on_host = false;
  bool operator==(const WeightState&) const = default;
};

// One weight as it was seen last, and words of its memory at equal distances.
struct WeightGlance {
  const PyObject* object = nullptr;  // null: every call has to look at it
  TorchTensors::Parts parts;
  const std::byte* words = nullptr;  // the first one; null on a GPU, where none is compared
  size_t count = 0, distance = 0;    // of words; between them, in bytes
};

class WeightGlances {
 public:
  // `words`: at most compared per weight. Without `torch` nothing is remembered.
  WeightGlances(std::optional<TorchTensors> torch, size_t words) : torch_(std::move(torch)), most_(words) {}

  size_t add();  // the index of one more weight
  // Remembers a weight that was just looked at; not if its parts do not agree with what torch says of it.
  void remember(size_t index, nb::handle tensor, const WeightState& seen);

  void forget(size_t index) { rows_[index].object = nullptr; }

  // Sizes are those of the last look: torch.compile's guards require it.
  bool is_same(size_t index, nb::handle tensor) const {
    const WeightGlance& last = rows_[index];
    if (tensor.ptr() != last.object || !torch_->are_same(last.parts)) return false;
    return last.words == nullptr || has_same_words(last, &values_[index * most_]);
  }

 private:
  static uint64_t load(const std::byte* address) {
    uint64_t word;
    std::memcpy(&word, address, sizeof(word));
    return word;
  }
  static bool has_same_words(const WeightGlance& row, const uint64_t* values) {
    uint64_t difference = 0;
    const std::byte* at = row.words;
    for (size_t i = 0; i < row.count; ++i, at += row.distance) difference |= load(at) ^ values[i];
    return difference == 0;
  }

  std::optional<TorchTensors> torch_;
  size_t most_;
  std::vector<WeightGlance> rows_;
  std::vector<uint64_t> values_;  // `most_` per weight
};

}  // namespace ingot::python
