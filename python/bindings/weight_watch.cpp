// SPDX-License-Identifier: Apache-2.0
#include "weight_watch.h"

#include <span>
#include <utility>

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace ingot::python {
namespace {

// Interned: looking it up makes no string.
PyObject* name_of_version() {
  static PyObject* const name = PyUnicode_InternFromString("_version");  // lives as long as the process
  return name;
}

int64_t version_of(nb::handle tensor) {
  PyObject* version = PyObject_GetAttr(tensor.ptr(), name_of_version());
  if (version == nullptr) {  // inference tensors do not track it
    PyErr_Clear();
    return -1;
  }
  const int64_t value = PyLong_AsLongLong(version);
  Py_DECREF(version);
  return value;
}

// The bytes between the first and the last element, whatever the strides.
std::span<const std::byte> extent_of(const ingot_tensor& tensor) {
  int64_t last = 0, dense = 1;
  for (int32_t axis = tensor.rank - 1; axis >= 0; --axis) {
    const int64_t size = tensor.shape[axis];
    if (size == 0) return {};
    last += (size - 1) * (tensor.strides != nullptr ? tensor.strides[axis] : dense);
    dense *= size;
  }
  return {static_cast<const std::byte*>(tensor.data),
          static_cast<size_t>(last + 1) * element_bytes(tensor.dtype)};
}

}  // namespace

WeightCheck parse_weight_check(const std::string& text) {
  if (text == "full") return WeightCheck::kFull;
  return text == "thorough" ? WeightCheck::kThorough : WeightCheck::kFast;
}

size_t pairs_of(WeightCheck check) {
  return check == WeightCheck::kFast ? 4 : check == WeightCheck::kThorough ? 32 : 1;
}

WatchedWeight::WatchedWeight(std::string name, nb::object tensor, int position, WeightCheck check,
                             bool on_device)
    : pieces_(pairs_of(check)),
      check_(check),
      on_device_(on_device),
      position_(position),
      name_(std::move(name)) {
  update(tensor);
}

bool WatchedWeight::update(nb::handle tensor) {
  ArrayView view;
  view_array(tensor, view, name_.c_str());
  const bool on_host = view.tensor.device_type != INGOT_DEVICE_CUDA;
  std::span<const std::byte> bytes;
  if (on_host) bytes = extent_of(view.tensor);
  const WeightState now{.version = version_of(tensor),
                        .data = view.tensor.data,
                        .element = element_bytes(view.tensor.dtype),
                        .bytes = bytes.size(),
                        .on_host = on_host};
  const bool is_other = !tensor.is(tensor_) || now != seen_;
  if (is_other) tensor_ = nb::borrow(tensor);
  seen_ = now;
  if (on_host) return take(bytes) || is_other;
  if (check_ != WeightCheck::kFull || on_device_) return is_other;
  const nb::object copy = tensor.attr("detach")().attr("cpu")();
  ArrayView host;
  view_array(copy, host, name_.c_str());
  return take(extent_of(host.tensor)) || is_other;
}

// Whether a piece, or the hash, differs from the last one.
bool WatchedWeight::take(std::span<const std::byte> bytes) {
  if (check_ != WeightCheck::kFull)
    return take_pieces(PieceLayout::of(bytes.size(), pieces_.size()), bytes.data(), pieces_);
  const uint64_t before = std::exchange(hash_, XXH3_64bits(bytes.data(), bytes.size()));
  return hash_ != before;
}

}  // namespace ingot::python
