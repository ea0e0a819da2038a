// SPDX-License-Identifier: Apache-2.0
#include "torch_tensors.h"

#include <dlfcn.h>
#include <malloc.h>

#include <algorithm>
#include <vector>

namespace ingot::python {
namespace {

constexpr size_t kWord = sizeof(void*);

uint64_t integer(const nb::object& value) { return nb::cast<uint64_t>(value); }
uint64_t storage_of(nb::handle tensor) { return integer(tensor.attr("untyped_storage")().attr("_cdata")); }

// The words of an object of torch, which operator new allocated.
std::vector<uint64_t> words_of(const void* object) {
  std::vector<uint64_t> words(::malloc_usable_size(const_cast<void*>(object)) / kWord);
  std::memcpy(words.data(), object, words.size() * kWord);
  return words;
}

// The C++ tensor of a Python object, by a new handle that is deleted again.
const std::byte* tensor_of(nb::handle object) {
  void* const library = dlopen("libtorch_cpu.so", RTLD_LAZY | RTLD_NOLOAD);
  if (library == nullptr) return nullptr;
  using DeleteFunction = int32_t (*)(void*);
  const auto remove = reinterpret_cast<DeleteFunction>(dlsym(library, "aoti_torch_delete_tensor_object"));
  dlclose(library);  // Python never unloads torch
  if (remove == nullptr) return nullptr;
  const nb::object capsule =
      nb::module_::import_("torch._C._aoti").attr("unsafe_alloc_void_ptr_from_tensor")(object);
  void* const handle = PyCapsule_GetPointer(capsule.ptr(), PyCapsule_GetName(capsule.ptr()));
  if (handle == nullptr) throw nb::python_error();
  const auto* const tensor = *static_cast<const std::byte* const*>(handle);
  remove(handle);
  return tensor;
}

// The offset of the only unit of `size` bytes, of `count`, for which that holds.
template <typename Holds>
std::optional<size_t> only_one(size_t count, size_t size, Holds&& holds) {
  std::optional<size_t> found;
  for (size_t i = 0; i < count; ++i) {
    if (!holds(i)) continue;
    if (found) return std::nullopt;
    found = i * size;
  }
  return found;
}

bool set(size_t& offset, std::optional<size_t> found) {
  offset = found.value_or(0);
  return found.has_value();
}

}  // namespace

std::optional<TorchTensors> TorchTensors::find(nb::handle first, nb::handle second, nb::handle outside,
                                               nb::handle increment) {
  TorchTensors torch;
  torch.type_ = nb::module_::import_("torch._C").attr("TensorBase");
  const bool found = torch.find_tensor(first) && torch.find_parts_of_tensor(first, second) &&
                     torch.find_memory(outside) && torch.find_version(first, increment);
  if (found) torch.find_end(first);
  return found ? std::optional(std::move(torch)) : std::nullopt;
}

bool TorchTensors::find_tensor(nb::handle object) {
  const std::byte* const tensor = tensor_of(object);
  const auto bytes = nb::cast<size_t>(type_.attr("__basicsize__"));
  return tensor != nullptr && set(at_.in_object, only_one(bytes / kWord, kWord, [&](size_t i) {
                                    return pointer(object.ptr(), i * kWord) == tensor;
                                  }));
}

bool TorchTensors::find_parts_of_tensor(nb::handle first, nb::handle second) {
  const std::vector<uint64_t> a = words_of(tensor_in(first)), b = words_of(tensor_in(second));
  const nb::object detached = first.attr("detach")();  // shares the storage and the versions of `first`
  const std::vector<uint64_t> c = words_of(tensor_in(detached));
  const size_t count = std::min({a.size(), b.size(), c.size()});
  const auto find_both = [&](size_t& offset, uint64_t of_first, uint64_t of_second) {
    return set(offset,
               only_one(count, kWord, [&](size_t i) { return a[i] == of_first && b[i] == of_second; }));
  };
  return find_both(at_.storage, storage_of(first), storage_of(second)) &&
         find_both(at_.offset, integer(first.attr("storage_offset")()),
                   integer(second.attr("storage_offset")())) &&
         set(at_.counter, only_one(count, kWord, [&](size_t i) {
               const bool is_other = i * kWord != at_.storage && i * kWord != at_.offset;
               return is_other && a[i] == c[i] && a[i] != b[i];
             }));
}

bool TorchTensors::find_memory(nb::handle outside) {
  const uint64_t address = integer(outside.attr("data_ptr")());
  const std::vector<uint64_t> words = words_of(pointer(tensor_in(outside), at_.storage));
  return set(at_.memory, only_one(words.size(), kWord, [&](size_t i) { return words[i] == address; }));
}

// The only 32 bits that change as the version does.
bool TorchTensors::find_version(nb::handle tensor, nb::handle increment) {
  const std::byte* const counter = pointer(tensor_in(tensor), at_.counter);
  const size_t units = words_of(counter).size() * kWord / sizeof(uint32_t);
  std::vector<bool> follows(units, true);
  for (const int step : {0, 5, 2}) {
    for (int i = 0; i < step; ++i) increment(tensor);
    const auto version = nb::cast<uint32_t>(tensor.attr("_version"));
    for (size_t i = 0; i < units; ++i)
      follows[i] = follows[i] && load<uint32_t>(counter, i * sizeof(uint32_t)) == version;
  }
  return set(at_.version, only_one(units, sizeof(uint32_t), [&](size_t i) { return follows[i]; }));
}

// Left at 0 unless changes of the dims, the sizes, the strides and the dtype all show in the object.
void TorchTensors::find_end(nb::handle model) {
  const nb::object tensor = model.attr("clone")();
  std::vector<std::byte> last;
  // The memory behind an object may belong to another one: objects of one kind have at least the least of it.
  size_t end = SIZE_MAX;
  const auto has_changed = [&] {
    const std::byte* const object = tensor_in(tensor);
    end = std::min({end, ::malloc_usable_size(const_cast<std::byte*>(object)),
                    ::malloc_usable_size(const_cast<std::byte*>(tensor_in(model)))});
    std::vector<std::byte> now(object + at_.storage, object + end);
    return !std::ranges::equal(now, std::exchange(last, now));
  };
  has_changed();
  tensor.attr("unsqueeze_")(0);
  if (!has_changed()) return;
  tensor.attr("t_")();
  if (!has_changed()) return;
  tensor.attr("resize_")(4, 1);
  if (!has_changed()) return;
  tensor.attr("data") = tensor.attr("double")();
  const nb::object halves = tensor.attr("half")();
  if (!has_changed()) return;
  tensor.attr("data") = halves;
  if (has_changed()) at_.end = end;
}

bool TorchTensors::is_tensor(nb::handle object) const {
  auto* const type = reinterpret_cast<PyTypeObject*>(type_.ptr());  // not what __class__ says
  return PyType_IsSubtype(Py_TYPE(object.ptr()), type) != 0;
}

std::optional<TorchTensors::Parts> TorchTensors::locate(nb::handle object) const {
  if (!is_tensor(object)) return std::nullopt;
  Parts parts{.tensor = tensor_in(object)};
  parts.storage = pointer(parts.tensor, at_.storage);
  parts.counter = pointer(parts.tensor, at_.counter);
  if (parts.storage == nullptr || parts.counter == nullptr) return std::nullopt;
  parts.offset = load<int64_t>(parts.tensor, at_.offset);
  parts.memory = pointer(parts.storage, at_.memory);
  parts.version = load<uint32_t>(parts.counter, at_.version);
  return parts;
}

std::optional<TorchTensors::Contents> TorchTensors::contents_of(nb::handle object) const {
  if (at_.end == 0 || !is_tensor(object)) return std::nullopt;
  Contents contents{.tensor = tensor_in(object)};
  contents.storage = pointer(contents.tensor, at_.storage);
  if (contents.storage == nullptr) return std::nullopt;
  contents.of_tensor.assign(contents.tensor + at_.storage, contents.tensor + at_.end);
  std::memcpy(contents.of_storage.data(), contents.storage + at_.memory, contents.of_storage.size());
  return contents;
}

}  // namespace ingot::python
