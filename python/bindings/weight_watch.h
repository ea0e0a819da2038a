// SPDX-License-Identifier: Apache-2.0
// Detects that a weight bound to an engine has changed since it was packed.
#pragma once

#include <nanobind/nanobind.h>

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "exchange.h"

namespace ingot::python {

// How a write through `.data` or numpy is noticed, which leaves no other trace in a tensor.
enum class WeightCheck {
  kFast,      // by 8 words spread over its bytes
  kThorough,  // by 64 words
  kFull,      // by a hash of all bytes
};
WeightCheck parse_weight_check(const std::string& text);  // "fast", "thorough", "full"

// A weight counts as unchanged if its object, its `_version` (absent on inference tensors), its data pointer
// and what the check looks at are unchanged. On a GPU only kFull looks at the bytes, on a copy.
class WatchedWeight {
 public:
  WatchedWeight(std::string name, nb::object tensor, int position, WeightCheck check);

  const std::string& name() const { return name_; }
  int position() const { return position_; }  // among the call's arguments; -1: not passed at calls
  nb::handle tensor() const { return tensor_; }

  // Whether `tensor` differs from the last one; remembers it then.
  bool update(nb::handle tensor);

 private:
  struct Seen {
    int64_t version = -1;
    const void* data = nullptr;
    size_t bytes = 0;  // between the first and the last element
    bool operator==(const Seen&) const = default;
  };
  void place_words(size_t bytes);
  bool take_words(std::span<const std::byte> bytes);

  std::string name_;
  nb::object tensor_;
  int position_;
  WeightCheck check_;
  Seen seen_;
  std::vector<size_t> offsets_;  // of the words, in bytes
  std::vector<uint64_t> words_;  // as they were seen last
};

}  // namespace ingot::python
