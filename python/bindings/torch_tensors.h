// SPDX-License-Identifier: Apache-2.0
// Where torch's C++ library keeps what tells that a tensor has changed: a call of a function per weight, be
// it torch's own, takes longer than a whole call of a small engine if there are many weights.
#pragma once

#include <nanobind/nanobind.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <type_traits>

namespace ingot::python {

namespace nb = nanobind;

// Offsets in bytes within torch's objects. No header of torch is compiled in: they are found by looking at
// tensors whose values are known, and each tensor is compared with what torch says of it before they are used
// for it.
class TorchTensors {
 public:
  // The memory of a tensor's objects, and what they held. Valid while the Python object has the same tensor.
  struct Parts {
    const std::byte* in_object = nullptr;  // where the Python object points at the tensor
    const std::byte* tensor = nullptr;
    const std::byte* storage = nullptr;
    const std::byte* counter = nullptr;  // of versions
    const std::byte* memory = nullptr;   // of the storage
    int64_t offset = 0;                  // of the first element, in elements
    uint32_t version = 0;
  };

  // `first` and `second`: equal tensors in the middle of storages of their own, `outside`: one at the start
  // of memory that torch did not allocate; `increment`: torch's function that increments a tensor's version.
  // Nothing if this version of torch keeps things elsewhere.
  static std::optional<TorchTensors> find(nb::handle first, nb::handle second, nb::handle outside,
                                          nb::handle increment);

  // Nothing if `object` is not a tensor with a version and a storage.
  std::optional<Parts> locate(nb::handle object) const;

  // Each step is valid after the one before it; one branch per step.
  bool are_same(const Parts& last) const {
    if (pointer(last.in_object, 0) != last.tensor) return false;
    const auto differs = [](const std::byte* object, size_t offset, const auto& value) {
      return static_cast<uint64_t>(load<std::decay_t<decltype(value)>>(object, offset) != value);
    };
    const uint64_t others = differs(last.tensor, storage_, last.storage) |
                            differs(last.tensor, counter_, last.counter) |
                            differs(last.tensor, offset_, last.offset);
    return others == 0 &&
           (differs(last.storage, memory_, last.memory) | differs(last.counter, version_, last.version)) == 0;
  }

 private:
  TorchTensors() = default;
  template <typename Value>
  static Value load(const std::byte* object, size_t offset) {
    Value value;
    std::memcpy(&value, object + offset, sizeof(value));
    return value;
  }
  static const std::byte* pointer(const std::byte* object, size_t offset) {
    return load<const std::byte*>(object, offset);
  }
  bool find_tensor(nb::handle object);
  bool find_parts_of_tensor(nb::handle first, nb::handle second);
  bool find_memory(nb::handle outside);
  bool find_version(nb::handle tensor, nb::handle increment);
  const std::byte* tensor_in(nb::handle object) const;

  nb::object type_;                                // of all tensors in Python
  size_t in_object_ = 0;                           // the tensor, in a Python object
  size_t storage_ = 0, offset_ = 0, counter_ = 0;  // in a tensor
  size_t memory_ = 0;                              // in a storage
  size_t version_ = 0;                             // in a counter
};

}  // namespace ingot::python
