// SPDX-License-Identifier: Apache-2.0
// Where torch's C++ library keeps what tells that a tensor has changed: a call of a function per weight, be
// it torch's own, takes longer than a whole call of a small engine if there are many weights.
#pragma once

#include <nanobind/nanobind.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <vector>

namespace ingot::python {

namespace nb = nanobind;

// Offsets in bytes within torch's objects. No header of torch is compiled in: they are found by looking at
// tensors whose values are known, and each tensor is compared with what torch says of it before they are used
// for it.
class TorchTensors {
 public:
  // The memory of a tensor's objects, and what they held. Valid while the Python object has the same tensor.
  struct Parts {
    const std::byte* tensor = nullptr;
    const std::byte* storage = nullptr;
    const std::byte* counter = nullptr;  // of versions
    const std::byte* memory = nullptr;   // of the storage
    int64_t offset = 0;                  // of the first element, in elements
    uint32_t version = 0;
  };

  // All that a tensor's object holds beside its counts of references, and what its storage says of its
  // memory. Valid while the Python object has the same tensor.
  struct Contents {
    const std::byte* tensor = nullptr;
    const std::byte* storage = nullptr;
    std::vector<std::byte> of_tensor;                       // from `Offsets::storage` to `Offsets::end`
    std::array<std::byte, 3 * sizeof(void*)> of_storage{};  // from `Offsets::memory`: address, owner, deleter
  };

  struct Offsets {
    size_t in_object = 0;                         // the tensor, in a Python object
    size_t storage = 0, offset = 0, counter = 0;  // in a tensor
    size_t memory = 0;                            // in a storage
    size_t version = 0;                           // in a counter
    size_t end = 0;                               // of a tensor's object; 0: it may have parts elsewhere

    // Whether the Python object still has these parts. Each step is valid after the one before it. Branches,
    // not a sum of differences: comparing with memory and branching takes the fewest instructions.
    bool are_same(const PyObject* object, const Parts& last) const {
      return is_at(object, in_object, last.tensor) && is_at(last.tensor, storage, last.storage) &&
             is_at(last.tensor, counter, last.counter) && is_at(last.tensor, offset, last.offset) &&
             is_at(last.storage, memory, last.memory) && is_at(last.counter, version, last.version);
    }

    // Whether the Python object still has a tensor with these contents.
    bool are_same(const PyObject* object, const Contents& last) const {
      return is_at(object, in_object, last.tensor) &&
             std::memcmp(last.tensor + storage, last.of_tensor.data(), last.of_tensor.size()) == 0 &&
             std::memcmp(last.storage + memory, last.of_storage.data(), last.of_storage.size()) == 0;
    }
  };

  // `first` and `second`: equal tensors in the middle of storages of their own, `outside`: one at the start
  // of memory that torch did not allocate; `increment`: torch's function that increments a tensor's version.
  // Nothing if this version of torch keeps things elsewhere.
  static std::optional<TorchTensors> find(nb::handle first, nb::handle second, nb::handle outside,
                                          nb::handle increment);

  // Nothing if `object` is not a tensor with a version and a storage.
  std::optional<Parts> locate(nb::handle object) const;
  // Also nothing if this version of torch keeps sizes or the dtype elsewhere.
  std::optional<Contents> contents_of(nb::handle object) const;

  const Offsets& offsets() const { return at_; }

 private:
  TorchTensors() = default;
  template <typename Value>
  static Value load(const void* object, size_t offset) {
    Value value;
    std::memcpy(&value, static_cast<const std::byte*>(object) + offset, sizeof(value));
    return value;
  }
  template <typename Value>
  static bool is_at(const void* object, size_t offset, const Value& value) {
    return load<Value>(object, offset) == value;
  }
  static const std::byte* pointer(const void* object, size_t offset) {
    return load<const std::byte*>(object, offset);
  }
  bool find_tensor(nb::handle object);
  bool find_parts_of_tensor(nb::handle first, nb::handle second);
  bool find_memory(nb::handle outside);
  bool find_version(nb::handle tensor, nb::handle increment);
  void find_end(nb::handle model);
  bool is_tensor(nb::handle object) const;
  const std::byte* tensor_in(nb::handle object) const { return pointer(object.ptr(), at_.in_object); }

  nb::object type_;  // of all tensors in Python
  Offsets at_;
};

}  // namespace ingot::python
