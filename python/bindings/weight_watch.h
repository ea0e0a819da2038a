// SPDX-License-Identifier: Apache-2.0
// Detects that a weight bound to an engine has changed since it was packed.
#pragma once

#include <nanobind/nanobind.h>

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "exchange.h"
#include "torch_tensors.h"

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
  // `torch`: may be null, then each look at a tensor goes through Python.
  WatchedWeight(std::string name, nb::object tensor, int position, WeightCheck check,
                const TorchTensors* torch);

  const std::string& name() const { return name_; }
  int position() const { return position_; }  // among the call's arguments; -1: not passed at calls
  nb::handle tensor() const { return tensor_; }

  // Whether `tensor` differs from the last one; remembers it then.
  bool update(nb::handle tensor, const TorchTensors* torch) {
    return !is_as_glanced(tensor, torch) && look(tensor, torch);
  }

 private:
  // What decides, without a look into the object: the sizes are those of the last call, as torch.compile's
  // guards require.
  struct Glance {
    TorchTensors::Location tensor;
    const void* value = nullptr;
    int64_t version = -1;
    const void* data = nullptr;
  };
  struct Word {
    size_t offset = 0;   // in bytes
    uint64_t value = 0;  // as it was seen last
  };
  struct Seen {
    int64_t version = -1;
    const void* data = nullptr;
    size_t bytes = 0;  // between the first and the last element
    bool operator==(const Seen&) const = default;
  };
  bool is_as_glanced(nb::handle tensor, const TorchTensors* torch) const;
  bool look(nb::handle tensor, const TorchTensors* torch);
  Glance glance_at(nb::handle tensor, const TorchTensors* torch) const;
  void place_words(size_t bytes);
  bool take_words(std::span<const std::byte> bytes);

  nb::object tensor_;
  Glance glance_;
  std::vector<Word> words_;
  bool on_host_ = false;
  WeightCheck check_;
  int position_;
  Seen seen_;
  std::string name_;
};

}  // namespace ingot::python
