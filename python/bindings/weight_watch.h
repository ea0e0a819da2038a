// SPDX-License-Identifier: Apache-2.0
// Detects that a weight bound to an engine has changed since it was packed.
#pragma once

#include <nanobind/nanobind.h>

#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "exchange.h"
#include "weight_glance.h"

namespace ingot::python {

// How a write through `.data` or numpy is noticed, which leaves no other trace in a tensor.
enum class WeightCheck {
  kFast,      // by 8 pieces of 16 bytes, spread over the weight
  kThorough,  // by 64 pieces
  kFull,      // by a hash of all bytes
};
WeightCheck parse_weight_check(const std::string& text);  // "fast", "thorough", "full"

size_t pairs_of(WeightCheck check);  // of pieces that are compared

// A weight counts as unchanged if its object, its `_version` (absent on inference tensors), its data pointer
// and what the check looks at are unchanged. On a GPU only kFull looks at the bytes, on a copy. The look of
// WeightGlances comes first: this one asks Python for the version.
class WatchedWeight {
 public:
  WatchedWeight(std::string name, nb::object tensor, int position, WeightCheck check, bool on_device);

  const std::string& name() const { return name_; }
  int position() const { return position_; }  // among the call's arguments; -1: not passed at calls
  nb::handle tensor() const { return tensor_; }
  const WeightState& state() const { return seen_; }
  std::span<const WeightPieces> pieces() const { return pieces_; }

  // Whether `tensor` differs from the last one; remembers it then.
  bool update(nb::handle tensor);
  // The next update finds a difference.
  void forget() { seen_ = {.version = -2}; }
  // Watches another tensor from now on, which the next update finds to be different; returns the old one.
  nb::object watch(nb::handle tensor) {
    forget();
    return std::exchange(tensor_, nb::borrow(tensor));
  }

 private:
  bool take(std::span<const std::byte> bytes);

  nb::object tensor_;
  std::vector<WeightPieces> pieces_;
  uint64_t hash_ = 0;  // of kFull
  WeightCheck check_;
  bool on_device_;
  int position_;
  WeightState seen_;
  std::string name_;
};

}  // namespace ingot::python
