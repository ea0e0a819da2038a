// SPDX-License-Identifier: Apache-2.0
#include "weight_watch.h"

#include <algorithm>
#include <cstring>
#include <span>

#define XXH_INLINE_ALL
#include <xxhash.h>

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

std::vector<uint64_t> words_of(std::span<const std::byte> bytes, size_t count) {
  std::vector<uint64_t> words(count);
  const size_t width = std::min(bytes.size(), sizeof(uint64_t));
  for (size_t i = 0; i < count && width > 0; ++i)
    std::memcpy(&words[i], bytes.data() + (bytes.size() - width) * i / (count - 1), width);
  return words;
}

std::vector<uint64_t> sample(std::span<const std::byte> bytes, WeightCheck check) {
  switch (check) {
    case WeightCheck::kFast:
      return words_of(bytes, 8);
    case WeightCheck::kThorough:
      return words_of(bytes, 64);
    case WeightCheck::kFull:
      return {XXH3_64bits(bytes.data(), bytes.size())};
  }
  return {};
}

}  // namespace

WeightCheck parse_weight_check(const std::string& text) {
  if (text == "full") return WeightCheck::kFull;
  return text == "thorough" ? WeightCheck::kThorough : WeightCheck::kFast;
}

WatchedWeight::WatchedWeight(std::string name, nb::object tensor, int position, WeightCheck check)
    : name_(std::move(name)),
      tensor_(std::move(tensor)),
      position_(position),
      check_(check),
      seen_(look(tensor_)) {}

bool WatchedWeight::update(nb::handle tensor) {
  Seen now = look(tensor);
  if (tensor.is(tensor_) && now == seen_) return false;
  tensor_ = nb::borrow(tensor);
  seen_ = std::move(now);
  return true;
}

WatchedWeight::Seen WatchedWeight::look(nb::handle tensor) const {
  ArrayView view;
  view_array(tensor, view, name_.c_str());
  Seen seen{.version = version_of(tensor), .data = view.tensor.data, .words = {}};
  const bool on_host = view.tensor.device_type != INGOT_DEVICE_CUDA;
  if (on_host) {
    seen.words = sample(extent_of(view.tensor), check_);
  } else if (check_ == WeightCheck::kFull) {
    const nb::object copy = tensor.attr("detach")().attr("cpu")();
    ArrayView host;
    view_array(copy, host, name_.c_str());
    seen.words = sample(extent_of(host.tensor), check_);
  }
  return seen;
}

}  // namespace ingot::python
