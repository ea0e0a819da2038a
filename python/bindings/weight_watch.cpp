// SPDX-License-Identifier: Apache-2.0
#include "weight_watch.h"

#include <cstring>

namespace ingot::python {
namespace {

int64_t version_of(nb::handle tensor) {
  PyObject* version = PyObject_GetAttrString(tensor.ptr(), "_version");
  if (version == nullptr) {  // inference tensors do not track it
    PyErr_Clear();
    return -1;
  }
  const int64_t value = PyLong_AsLongLong(version);
  Py_DECREF(version);
  return value;
}

size_t element_bytes(int32_t dtype) {
  switch (dtype) {
    case INGOT_F64:
    case INGOT_I64:
    case INGOT_U64:
    case INGOT_C64:
      return 8;
    case INGOT_F32:
    case INGOT_I32:
    case INGOT_U32:
      return 4;
    case INGOT_F16:
    case INGOT_BF16:
    case INGOT_I16:
    case INGOT_U16:
      return 2;
    case INGOT_C128:
      return 16;
    default:
      return 1;
  }
}

}  // namespace

WatchedWeight::WatchedWeight(std::string name, nb::object tensor, int position)
    : name_(std::move(name)), tensor_(std::move(tensor)), position_(position), seen_(look(tensor_)) {}

bool WatchedWeight::update(nb::handle tensor) {
  const Seen now = look(tensor);
  if (tensor.is(tensor_) && now == seen_) return false;
  tensor_ = nb::borrow(tensor);
  seen_ = now;
  return true;
}

WatchedWeight::Seen WatchedWeight::look(nb::handle tensor) const {
  ArrayView view;
  view_array(tensor, view, name_.c_str());
  Seen seen{.version = version_of(tensor), .data = view.tensor.data};
  if (view.tensor.device_type == INGOT_DEVICE_CUDA) return seen;  // words that the host cannot read
  // The words are spread between the first and the last element, whatever the strides.
  int64_t last = 0, dense = 1;
  for (int32_t axis = view.tensor.rank - 1; axis >= 0; --axis) {
    const int64_t size = view.tensor.shape[axis];
    if (size == 0) return seen;
    last += (size - 1) * (view.tensor.strides != nullptr ? view.tensor.strides[axis] : dense);
    dense *= size;
  }
  const size_t bytes = (last + 1) * element_bytes(view.tensor.dtype);
  const auto* data = static_cast<const std::byte*>(view.tensor.data);
  for (int i = 0; i < kWords; ++i) {
    const size_t width = std::min(bytes, sizeof(uint64_t));
    std::memcpy(&seen.words[i], data + (bytes - width) * i / (kWords - 1), width);
  }
  return seen;
}

}  // namespace ingot::python
