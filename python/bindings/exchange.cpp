// SPDX-License-Identifier: Apache-2.0
#include "exchange.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <span>
#include <string>

#include "dlpack_exchange.h"
#include "torch_functions.h"

namespace ingot::python {
namespace {

using dlpack::ExchangeApi;

struct DTypeRow {
  int32_t dtype;
  uint8_t code, bits;  // DLPack
  const char* name;    // of numpy and torch
  bool is_in_numpy = true;
};
constexpr std::array kDTypes = {
    DTypeRow{INGOT_BOOL, 6, 8, "bool"},
    DTypeRow{INGOT_U8, 1, 8, "uint8"},
    DTypeRow{INGOT_I8, 0, 8, "int8"},
    DTypeRow{INGOT_I16, 0, 16, "int16"},
    DTypeRow{INGOT_I32, 0, 32, "int32"},
    DTypeRow{INGOT_I64, 0, 64, "int64"},
    DTypeRow{INGOT_F16, 2, 16, "float16"},
    DTypeRow{INGOT_BF16, 4, 16, "bfloat16", false},
    DTypeRow{INGOT_F32, 2, 32, "float32"},
    DTypeRow{INGOT_F64, 2, 64, "float64"},
    DTypeRow{INGOT_U16, 1, 16, "uint16"},
    DTypeRow{INGOT_U32, 1, 32, "uint32"},
    DTypeRow{INGOT_U64, 1, 64, "uint64"},
    DTypeRow{INGOT_E4M3, 10, 8, "float8_e4m3fn", false},
    DTypeRow{INGOT_E5M2, 12, 8, "float8_e5m2", false},
    DTypeRow{INGOT_C64, 5, 64, "complex64"},
    DTypeRow{INGOT_C128, 5, 128, "complex128"},
};

[[noreturn]] void refuse(const char* what, const std::string& problem, const char* code = "INGOT-U309",
                         const char* advice = "") {
  const nb::object type = nb::module_::import_("ingot.errors").attr("UserError");
  const std::string text = std::string(what) + ": " + problem;
  PyErr_SetObject(type.ptr(), type(text.c_str(), nb::arg("code") = code, nb::arg("advice") = advice).ptr());
  throw nb::python_error();
}

// Names the dtype as the object itself does, with its byte order: ">f4"; or by the format of its buffer.
[[noreturn]] void refuse_dtype(nb::handle object, const char* format, const char* what) {
  const nb::object dtype = nb::getattr(object, "dtype", nb::str(format));
  const std::string name = nb::cast<std::string>(nb::str(dtype));
  const bool is_swapped = name.starts_with('>') || name.starts_with('!');
  refuse(what, "the dtype " + name + " is not supported", "INGOT-U309",
         is_swapped ? "its bytes are in big-endian order; pass array.astype(array.dtype.newbyteorder('='))"
                    : "");
}

// The exchange API of a type, looked up once per type: the last answer is cached, as most calls see a single
// type. The type is kept alive, so that no other type can get its address.
const ExchangeApi* exchange_api(PyTypeObject* type) {
  thread_local PyTypeObject* last_type = nullptr;
  thread_local const ExchangeApi* last_api = nullptr;
  if (type == last_type) return last_api;
  Py_INCREF(reinterpret_cast<PyObject*>(type));
  Py_XDECREF(reinterpret_cast<PyObject*>(last_type));
  PyObject* capsule = PyObject_GetAttrString(reinterpret_cast<PyObject*>(type), "__dlpack_c_exchange_api__");
  const ExchangeApi* api = nullptr;
  if (capsule == nullptr) {
    PyErr_Clear();
  } else {
    api = static_cast<const ExchangeApi*>(PyCapsule_GetPointer(capsule, "dlpack_exchange_api"));
    if (api == nullptr) PyErr_Clear();
    Py_DECREF(capsule);
    while (api != nullptr && api->version.major != 1) api = api->previous;
  }
  last_type = type;
  last_api = api;
  return api;
}

// torch's reason for not sharing a tensor (sparse, nested, quantized ...), without the C++ frames.
std::string first_line_of_error() {
  if (PyErr_Occurred() == nullptr) return "its type does not share it";
  const std::string text = nb::cast<std::string>(nb::str(nb::python_error().value()));
  return text.substr(0, text.find('\n'));
}

void view_dlpack(const ExchangeApi& api, nb::handle object, ArrayView& view, const char* what) {
  dlpack::TensorHeader header{};
  if (api.view_object == nullptr || api.view_object(object.ptr(), &header) != 0)
    refuse(what, "expected a dense tensor in host memory: " + first_line_of_error());
  const std::span shape(header.shape, static_cast<size_t>(header.ndim));
  if (header.data == nullptr && std::ranges::find(shape, 0) == shape.end())
    refuse(what, "expected a dense tensor in host memory: it has no values, as fake and masked tensors");
  const bool is_host = header.device.type == dlpack::kCpu || header.device.type == dlpack::kPinnedHost;
  if (!is_host && header.device.type != dlpack::kCuda)
    refuse(what, "the tensor is neither in host memory nor on a GPU; call .cpu() first");
  for (const DTypeRow& row : kDTypes) {
    if (row.code == header.dtype.code && row.bits == header.dtype.bits && header.dtype.lanes == 1) {
      view.tensor = {static_cast<std::byte*>(header.data) + header.byte_offset, row.dtype, header.ndim,
                     header.shape, header.strides};
      if (!is_host) view.tensor.device_type = INGOT_DEVICE_CUDA, view.tensor.device_id = header.device.id;
      return;
    }
  }
  refuse_dtype(object, "without a name", what);
}

int32_t dtype_of_format(const Py_buffer& buffer) {
  const char* format = buffer.format != nullptr ? buffer.format : "B";
  if (*format == '@' || *format == '=' || *format == '<') ++format;
  const bool is_complex = *format == 'Z';
  if (std::strlen(format) != (is_complex ? 2 : 1)) return 0;  // a struct of several, such as "ff"
  const auto by = [&](uint8_t code) {
    for (const DTypeRow& row : kDTypes) {
      if (row.code == code && row.bits == 8 * buffer.itemsize && row.is_in_numpy) return row.dtype;
    }
    return 0;
  };
  if (std::strchr("bhilqn", *format) != nullptr) return by(0);
  if (std::strchr("BHILQN", *format) != nullptr) return by(1);
  if (std::strchr("efd", *format) != nullptr) return by(2);
  if (*format == '?') return INGOT_BOOL;
  return is_complex ? by(5) : 0;
}

void view_buffer(nb::handle object, ArrayView& view, const char* what) {
  if (PyObject_GetBuffer(object.ptr(), &view.buffer, PyBUF_STRIDES | PyBUF_FORMAT) != 0) {
    PyErr_Clear();
    refuse(what,
           "expected a tensor or an array, got " + nb::cast<std::string>(object.type().attr("__name__")));
  }
  view.has_buffer = true;
  const Py_buffer& buffer = view.buffer;
  const int32_t dtype = dtype_of_format(buffer);
  if (dtype == 0) refuse_dtype(object, buffer.format, what);
  if (buffer.ndim > kMaxRank) refuse(what, std::to_string(buffer.ndim) + " dims are not supported");
  const auto rank = static_cast<size_t>(buffer.ndim);
  view.sizes = std::make_unique<int64_t[]>(2 * rank);
  int64_t *const shape = view.sizes.get(), *const strides = shape + rank;
  for (size_t i = 0; i < rank; ++i) {
    shape[i] = buffer.shape[i];
    if (buffer.strides[i] % buffer.itemsize != 0)
      refuse(what, "its strides are not multiples of the element size");
    strides[i] = buffer.strides[i] / buffer.itemsize;
  }
  view.tensor = {buffer.buf, dtype, buffer.ndim, shape, strides};
}

bool is_of_torch(const ExchangeApi& api) {
  static const ExchangeApi* torch = nullptr;
  if (torch == nullptr) {
    const nb::object module = nb::steal(PyImport_GetModule(nb::str("torch").ptr()));
    if (!module.is_valid()) return PyErr_Clear(), false;
    torch = exchange_api(reinterpret_cast<PyTypeObject*>(module.attr("Tensor").ptr()));
  }
  return torch == &api;
}

// Whether the owner declares it read-only; views, which calls usually borrow, have no flags. No tensor of
// torch is.
bool is_read_only(const ExchangeApi& api, nb::handle object) {
  if (is_of_torch(api)) return false;
  dlpack::ManagedTensor* tensor = nullptr;
  if (api.managed_from_object == nullptr || api.managed_from_object(object.ptr(), &tensor) != 0) {
    PyErr_Clear();
    return false;
  }
  const bool answer = (tensor->flags & dlpack::kReadOnly) != 0;
  if (tensor->deleter != nullptr) tensor->deleter(tensor);
  return answer;
}

// Null if it has no lazy bits.
nb::object without_lazy_bits(nb::handle object, const ArrayView& view) {
  static PyObject* const is_neg = find_in_torch({"TensorBase", "is_neg"});
  static PyObject* const is_conj = find_in_torch({"TensorBase", "is_conj"});
  const bool is_complex = view.tensor.dtype == INGOT_C64 || view.tensor.dtype == INGOT_C128;
  const bool is_negated = answers_yes(object, is_neg),
             is_conjugated = is_complex && answers_yes(object, is_conj);
  if (!is_negated && !is_conjugated) return {};
  nb::object plain = nb::borrow(object);
  if (is_conjugated) plain = plain.attr("resolve_conj")();
  return is_negated ? plain.attr("resolve_neg")() : plain;
}

bool is_in_order(const ingot_tensor& tensor) {
  uint64_t expected = 1;  // unsigned: of an expanded tensor it may overflow
  bool in_order = true;
  for (int32_t i = tensor.rank; i-- > 0 && tensor.strides != nullptr;) {
    if (tensor.shape[i] == 0) return true;
    in_order = in_order && (tensor.shape[i] == 1 || static_cast<uint64_t>(tensor.strides[i]) == expected);
    expected *= static_cast<uint64_t>(tensor.shape[i]);
  }
  return in_order;
}

void raise_allocation_error(void*, const char*, const char* message) {
  PyErr_SetString(PyExc_MemoryError, message);
}

nb::object allocate_dlpack(const ExchangeApi& api, const DTypeRow& row, int32_t rank, const int64_t* shape,
                           std::optional<int32_t> gpu, void** data) {
  dlpack::TensorHeader prototype{};
  prototype.device = {gpu ? dlpack::kCuda : dlpack::kCpu, gpu.value_or(0)};
  prototype.ndim = rank;
  prototype.dtype = {row.code, row.bits, 1};
  prototype.shape = const_cast<int64_t*>(shape);
  dlpack::ManagedTensor* tensor = nullptr;
  if (api.allocate(&prototype, &tensor, nullptr, &raise_allocation_error) != 0) throw nb::python_error();
  *data = static_cast<std::byte*>(tensor->tensor.data) + tensor->tensor.byte_offset;
  void* object = nullptr;
  if (api.managed_to_object(tensor, &object) != 0) throw nb::python_error();
  return nb::steal(static_cast<PyObject*>(object));
}

// How torch makes a tensor for the code of its own compiler: dense on the CPU or on its current GPU, past its
// dispatcher. Memory that comes by DLPack could not be resized, and takes twice as long. Null where this
// version of torch has no such function.
PyObject* torch_empty_strided(bool on_gpu) {
  static PyObject* const for_cpu = find_in_torch({"_dynamo", "guards", "_empty_strided_cpu"});
  static PyObject* const for_gpu = find_in_torch({"_dynamo", "guards", "_empty_strided_cuda"});
  return on_gpu ? for_gpu : for_cpu;
}

bool is_current_in_torch(int32_t gpu) {
  static PyObject* const current = find_in_torch({"_cuda_getDevice"});
  return current != nullptr && nb::cast<int32_t>(nb::handle(current)()) == gpu;
}

PyObject* torch_dtype(const DTypeRow& row) {
  static std::array<PyObject*, kDTypes.size()> dtypes{};
  PyObject*& dtype = dtypes[static_cast<size_t>(&row - kDTypes.data())];
  if (dtype == nullptr) dtype = nb::object(nb::module_::import_("torch").attr(row.name)).release().ptr();
  return dtype;
}

// On torch's current GPU if `on_gpu`.
nb::object allocate_torch(const ExchangeApi& api, const DTypeRow& row, int32_t rank, const int64_t* shape,
                          bool on_gpu, void** data) {
  const nb::object sizes = nb::steal(PyTuple_New(rank)), strides = nb::steal(PyTuple_New(rank));
  int64_t stride = 1;
  for (int32_t i = rank; i-- > 0;) {
    PyTuple_SetItem(sizes.ptr(), i, PyLong_FromLongLong(shape[i]));
    PyTuple_SetItem(strides.ptr(), i, PyLong_FromLongLong(stride));
    stride *= std::max<int64_t>(shape[i], 1);
  }
  PyObject* const arguments[] = {sizes.ptr(), strides.ptr(), torch_dtype(row)};
  nb::object tensor =
      nb::steal(PyObject_Vectorcall(torch_empty_strided(on_gpu), arguments, std::size(arguments), nullptr));
  if (!tensor.is_valid()) throw nb::python_error();
  dlpack::TensorHeader header{};
  if (api.view_object(tensor.ptr(), &header) != 0) throw nb::python_error();
  *data = static_cast<std::byte*>(header.data) + header.byte_offset;
  return tensor;
}

nb::object allocate_numpy(const DTypeRow& row, int32_t rank, const int64_t* shape, void** data) {
  if (!row.is_in_numpy) refuse("output", "numpy has no such dtype; pass torch tensors");
  nb::list sizes;
  for (int32_t i = 0; i < rank; ++i) sizes.append(shape[i]);
  nb::object array = nb::module_::import_("numpy").attr("empty")(nb::tuple(sizes), row.name);
  ArrayView view;
  view_array(array, view, "output");
  *data = view.tensor.data;
  return array;
}

}  // namespace

size_t element_bytes(int32_t dtype) {
  for (const DTypeRow& row : kDTypes) {
    if (row.dtype == dtype) return row.bits / 8;
  }
  return 1;
}

bool is_of_torch(nb::handle object) {
  const ExchangeApi* api = exchange_api(Py_TYPE(object.ptr()));
  return api != nullptr && is_of_torch(*api);
}

bool has_exchange_api(nb::handle object) { return exchange_api(Py_TYPE(object.ptr())) != nullptr; }

void view_array(nb::handle object, ArrayView& view, const char* what) {
  if (const ExchangeApi* api = exchange_api(Py_TYPE(object.ptr()))) {
    view_dlpack(*api, object, view, what);
  } else {
    view_buffer(object, view, what);
  }
}

void view_updated_array(nb::handle object, ArrayView& view, const char* what) {
  view_array(object, view, what);
  const ExchangeApi* api = exchange_api(Py_TYPE(object.ptr()));
  const bool read_only = api != nullptr ? is_read_only(*api, object) : view.buffer.readonly != 0;
  if (!read_only) return;
  refuse(what, "the model updates it in place, but its memory is read-only", "INGOT-U315",
         "pass a writable copy, such as numpy.array(x)");
}

void bump_versions(std::span<const nb::handle> objects) {
  nb::list tensors;
  for (const nb::handle object : objects) {
    if (is_of_torch(object)) tensors.append(object);
  }
  if (tensors.size() == 0) return;
  static PyObject* const increment = find_in_torch({"_increment_version"});
  if (increment == nullptr) return;
  PyObject* answer = PyObject_CallFunctionObjArgs(increment, tensors.ptr(), nullptr);
  if (answer == nullptr) PyErr_Clear();
  Py_XDECREF(answer);
}

nb::object resolved(nb::handle object, const ArrayView& view) {
  if (!is_of_torch(object)) return {};
  nb::object plain = without_lazy_bits(object, view);
  if (view.tensor.device_type != INGOT_DEVICE_CUDA || is_in_order(view.tensor)) return plain;
  return (plain.is_valid() ? plain : nb::borrow(object)).attr("contiguous")();
}

void refuse_lazy(nb::handle object, const ArrayView& view, const char* what) {
  if (is_of_torch(object) && without_lazy_bits(object, view).is_valid())
    refuse(what,
           "the model updates it in place, but it is a lazy negation or conjugate; call .resolve_neg() or "
           ".resolve_conj() first");
}

void* current_stream(nb::handle tensor, int32_t gpu) {
  constexpr uintptr_t kLegacyDefault = 1;  // of CUDA; its handle is 0, which is ambiguous here
  const ExchangeApi* api = exchange_api(Py_TYPE(tensor.ptr()));
  void* stream = nullptr;
  if (api == nullptr || api->current_stream == nullptr ||
      api->current_stream(dlpack::kCuda, gpu, &stream) != 0)
    refuse("input", "the tensor's framework does not expose its stream", "INGOT-U309", "update it");
  return stream != nullptr ? stream : reinterpret_cast<void*>(kLegacyDefault);
}

nb::object tensor_of_torch() {
  nb::object torch = nb::steal(PyImport_GetModule(nb::str("torch").ptr()));
  return torch.is_valid() ? torch.attr("empty")(0) : nb::object();
}

bool allocates_in_torch(nb::handle like, std::optional<int32_t> gpu) {
  return like.is_valid() && is_of_torch(like) && torch_empty_strided(gpu.has_value()) != nullptr &&
         (!gpu || is_current_in_torch(*gpu));
}

bool is_capturing_in_torch() {
  static PyObject* const answers = find_in_torch({"_cuda_isCurrentStreamCapturing"});
  return answers != nullptr && nb::handle(answers)().is(nb::bool_(true));
}

bool is_inference_in_torch() {
  static PyObject* const answers = find_in_torch({"is_inference_mode_enabled"});
  return answers != nullptr && nb::handle(answers)().is(nb::bool_(true));
}

nb::object allocate_array(nb::handle like, int32_t dtype, int32_t rank, const int64_t* shape,
                          std::optional<int32_t> gpu, void** data) {
  for (const DTypeRow& row : kDTypes) {
    if (row.dtype != dtype) continue;
    const ExchangeApi* api = like.is_valid() ? exchange_api(Py_TYPE(like.ptr())) : nullptr;
    if (api == nullptr) return allocate_numpy(row, rank, shape, data);
    return allocates_in_torch(like, gpu) ? allocate_torch(*api, row, rank, shape, gpu.has_value(), data)
                                         : allocate_dlpack(*api, row, rank, shape, gpu, data);
  }
  refuse("output", "this dtype cannot be returned to Python");
}

}  // namespace ingot::python
