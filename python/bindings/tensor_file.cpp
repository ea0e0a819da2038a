// SPDX-License-Identifier: Apache-2.0
// ingot._core.TensorFile: weights in files.
#include "tensor_file.h"

#include <nanobind/stl/filesystem.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <cstring>

#include "bindings.h"
#include "exchange.h"
#include "status.h"

namespace ingot::python {
namespace {

size_t byte_count(const ingot_tensor& tensor, const ArrayView& like) {
  size_t elements = 1;
  for (int32_t axis = 0; axis < tensor.rank; ++axis) elements *= static_cast<size_t>(tensor.shape[axis]);
  return elements * element_bytes(like.tensor.dtype);
}

}  // namespace

TensorFile::TensorFile(const std::filesystem::path& path) {
  ingot_tensors* tensors = nullptr;
  check(ingot_open_model_tensors(path.c_str(), &tensors));
  tensors_.reset(tensors);
}

std::vector<std::string> TensorFile::names() const {
  std::vector<std::string> names;
  for (size_t i = 0; i < count(); ++i) names.emplace_back(name(i));
  return names;
}

nb::object TensorFile::copy(const std::string& wanted, nb::handle like) const {
  for (size_t i = 0; i < count(); ++i) {
    if (wanted != name(i)) continue;
    const ingot_tensor& tensor = value(i);
    void* data = nullptr;
    nb::object array = allocate_array(like, tensor.dtype, tensor.rank, tensor.shape, {}, &data);
    ArrayView view;
    view_array(array, view, wanted.c_str());
    if (const size_t bytes = byte_count(tensor, view); bytes > 0) std::memcpy(data, tensor.data, bytes);
    return array;
  }
  throw nb::key_error(wanted.c_str());
}

void bind_tensor_file(nb::module_& module) {
  nb::class_<TensorFile>(module, "TensorFile")
      .def(nb::init<const std::filesystem::path&>(), nb::arg("path"))
      .def("names", &TensorFile::names)
      .def("copy", &TensorFile::copy, nb::arg("name"), nb::arg("like"));
}

}  // namespace ingot::python
