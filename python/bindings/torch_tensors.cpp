// SPDX-License-Identifier: Apache-2.0
#include "torch_tensors.h"

#include <dlfcn.h>

#include <span>

namespace ingot::python {
namespace {

// The attribute of a module that is imported; a null object if there is none.
nb::object find_attribute(const char* module, const char* name) {
  const nb::object imported = nb::steal(PyImport_GetModule(nb::str(module).ptr()));
  nb::object found;
  if (imported.is_valid()) found = nb::steal(PyObject_GetAttrString(imported.ptr(), name));
  if (PyErr_Occurred() != nullptr) PyErr_Clear();
  return found;
}

template <typename Function>
Function find_function(void* library, const char* name) {
  return reinterpret_cast<Function>(dlsym(library, name));
}

}  // namespace

std::optional<TorchTensors> TorchTensors::find() {
  TorchTensors torch;
  const nb::object type = find_attribute("torch._C", "TensorBase");
  const nb::object aoti = find_attribute("torch._C", "_aoti");
  if (!type.is_valid() || !aoti.is_valid() || !PyType_Check(type.ptr())) return std::nullopt;
  torch.copy_ = nb::getattr(aoti, "unsafe_alloc_void_ptr_from_tensor", nb::object());
  torch.object_bytes_ = static_cast<size_t>(reinterpret_cast<PyTypeObject*>(type.ptr())->tp_basicsize);
  void* library = dlopen("libtorch_cpu.so", RTLD_LAZY | RTLD_NOLOAD);
  if (library == nullptr) return std::nullopt;
  torch.version_ = find_function<VersionFunction>(library, "_ZNK2at10TensorBase8_versionEv");
  torch.data_ = find_function<DataFunction>(library, "aoti_torch_get_data_ptr");
  torch.delete_ = find_function<DeleteFunction>(library, "aoti_torch_delete_tensor_object");
  dlclose(library);  // Python never unloads torch
  const bool has_all = torch.version_ != nullptr && torch.data_ != nullptr && torch.delete_ != nullptr;
  return has_all && torch.copy_.is_valid() ? std::optional(std::move(torch)) : std::nullopt;
}

// The layout of objects is torch's affair: the pointer is searched for.
TorchTensors::Location TorchTensors::locate(nb::handle object) const {
  const nb::object capsule = nb::steal(PyObject_CallOneArg(copy_.ptr(), object.ptr()));
  void* copy =
      capsule.is_valid() ? PyCapsule_GetPointer(capsule.ptr(), PyCapsule_GetName(capsule.ptr())) : nullptr;
  if (copy == nullptr) {
    PyErr_Clear();
    return {};
  }
  const void* const value = *static_cast<void**>(copy);
  delete_(copy);
  const std::span words(reinterpret_cast<void* const*>(object.ptr()), object_bytes_ / sizeof(void*));
  for (void* const& word : words.subspan(sizeof(PyObject) / sizeof(void*))) {
    if (word == value) return Location(&word);
  }
  return {};
}

}  // namespace ingot::python
