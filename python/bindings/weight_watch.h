// SPDX-License-Identifier: Apache-2.0
// Detects that a weight bound to an engine has changed since it was packed.
#pragma once

#include <nanobind/nanobind.h>

#include <array>
#include <cstdint>
#include <optional>
#include <string>

#include "exchange.h"

namespace ingot::python {

// A weight counts as unchanged if its object, its `_version` (absent on inference tensors), its data pointer,
// and 8 words spread over its bytes are unchanged: only the words can reveal writes through `.data`. Words of
// tensors on a GPU are not read.
class WatchedWeight {
 public:
  WatchedWeight(std::string name, nb::object tensor, int position);

  const std::string& name() const { return name_; }
  int position() const { return position_; }  // among the call's arguments; -1: not passed at calls
  nb::handle tensor() const { return tensor_; }

  // Whether `tensor` differs from the last one; remembers it then.
  bool update(nb::handle tensor);

 private:
  static constexpr int kWords = 8;
  struct Seen {
    int64_t version = -1;
    const void* data = nullptr;
    std::array<uint64_t, kWords> words{};
    bool operator==(const Seen&) const = default;
  };
  Seen look(nb::handle tensor) const;

  std::string name_;
  nb::object tensor_;
  int position_;
  Seen seen_;
};

}  // namespace ingot::python
