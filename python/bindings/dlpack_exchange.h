// SPDX-License-Identifier: Apache-2.0
// The subset of DLPack 1.3 that we use, following its published layout (dmlc.github.io/dlpack, C API of
// version 1.3).
#pragma once

#include <cstdint>

namespace ingot::python::dlpack {

struct Device {
  int32_t type;  // 1: CPU, 2: CUDA, 3: pinned host memory
  int32_t id;
};
struct DataType {
  uint8_t code;
  uint8_t bits;
  uint16_t lanes;
};
struct TensorHeader {
  void* data;
  Device device;
  int32_t ndim;
  DataType dtype;
  int64_t* shape;
  int64_t* strides;  // null: row-major
  uint64_t byte_offset;
};
struct Version {
  uint32_t major, minor;
};
struct ManagedTensor {
  Version version;
  void* context;
  void (*deleter)(ManagedTensor*);
  uint64_t flags;
  TensorHeader tensor;
};

struct ExchangeApi {
  Version version;
  ExchangeApi* previous;
  int (*allocate)(TensorHeader* prototype, ManagedTensor** out, void* error_context,
                  void (*set_error)(void* error_context, const char* kind, const char* message));
  int (*managed_from_object)(void* object, ManagedTensor** out);
  int (*managed_to_object)(ManagedTensor* tensor, void** object);
  int (*view_object)(void* object, TensorHeader* out);  // borrows; may be null
  int (*current_stream)(int32_t device_type, int32_t device_id, void** stream);
};

constexpr uint64_t kReadOnly = 1;  // among the flags of a ManagedTensor

constexpr int32_t kCpu = 1;
constexpr int32_t kCuda = 2;
constexpr int32_t kPinnedHost = 3;

}  // namespace ingot::python::dlpack
