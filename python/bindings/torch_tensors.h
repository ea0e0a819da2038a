// SPDX-License-Identifier: Apache-2.0
// What torch's C++ library knows of a tensor, by functions that it exports: without the attributes of Python
// objects, whose look-up takes longer than a whole call of a small engine if there are many weights.
#pragma once

#include <nanobind/nanobind.h>

#include <cstddef>
#include <cstdint>
#include <optional>

namespace ingot::python {

namespace nb = nanobind;

class TorchTensors {
 public:
  // A tensor of C++ (at::Tensor, which is one pointer) within a Python object. Another tensor may be put
  // there (torch.utils.swap_tensors): `value()` differs then.
  class Location {
   public:
    Location() = default;
    explicit Location(void* const* tensor) : tensor_(tensor) {}
    explicit operator bool() const { return tensor_ != nullptr; }
    const void* value() const { return *tensor_; }

   private:
    friend class TorchTensors;
    void* const* tensor_ = nullptr;
  };

  // Nothing if torch is not imported, or this version of it exports other functions.
  static std::optional<TorchTensors> find();

  // Valid as long as the object. Null if it is not a tensor of torch; needs one that has a version.
  Location locate(nb::handle object) const;
  int64_t version(Location tensor) const { return version_(tensor.tensor_); }
  // The address of the first element; null if torch does not say.
  const void* data(Location tensor) const {
    void* data = nullptr;
    return data_(const_cast<void**>(tensor.tensor_), &data) == 0 ? data : nullptr;
  }

 private:
  using VersionFunction = int64_t (*)(const void* tensor);      // at::TensorBase::_version
  using DataFunction = int32_t (*)(void* tensor, void** data);  // aoti_torch_get_data_ptr
  using DeleteFunction = int32_t (*)(void* tensor);             // aoti_torch_delete_tensor_object

  VersionFunction version_ = nullptr;
  DataFunction data_ = nullptr;
  DeleteFunction delete_ = nullptr;
  nb::object copy_;          // torch's function from an object to a capsule with a new at::Tensor
  size_t object_bytes_ = 0;  // of torch's part of an object
};

}  // namespace ingot::python
