// SPDX-License-Identifier: Apache-2.0
// NVIDIA's driver, opened when it is first needed: the same program runs where there is none.
#pragma once

#include <cstddef>
#include <cstdint>

namespace ingot::core::cuda {

using Address = unsigned long long;  // on the device
using Handle = void*;                // a context, stream, module, function, graph, node or event

struct LaunchAttribute {  // CUlaunchAttribute
  int32_t id;
  char padding[4];
  int64_t value[8];
};

struct IpcHandle {  // CUipcMemHandle
  char bytes[64];
};

struct LaunchConfig {  // CUlaunchConfig
  uint32_t grid[3], block[3];
  uint32_t shared_bytes;
  Handle stream;
  const LaunchAttribute* attributes;
  uint32_t attribute_count;
};

struct KernelNode {  // CUDA_KERNEL_NODE_PARAMS_v2
  Handle function;
  uint32_t grid[3], block[3];
  uint32_t shared_bytes;
  void** arguments;
  void** extra;
  Handle kernel, context;  // for a null function
};

// Functions as cuda.h declares them; each returns a CUresult, 0 for success.
struct Driver {
  int (*init)(unsigned);
  int (*error_name)(int, const char**);
  int (*device_count)(int*);
  int (*device)(int*, int);
  int (*device_name)(char*, int, int);
  int (*attribute)(int*, int, int);
  int (*unique_number)(char*, int);
  int (*retain_context)(Handle*, int);
  int (*current_context)(Handle*);
  int (*push_context)(Handle);
  int (*pop_context)(Handle*);
  int (*load_module)(Handle*, const void*);
  int (*unload_module)(Handle);
  int (*function)(Handle*, Handle module, const char*);
  int (*set_function_attribute)(Handle, int, int);
  int (*function_attribute)(int*, int, Handle);
  int (*allocate)(Address*, size_t);
  int (*free)(Address);
  // Memory that another GPU or process reaches.
  int (*enable_peer_access)(Handle context, unsigned);  // of the current context to memory of that one
  int (*share_memory)(IpcHandle*, Address);
  int (*open_shared_memory)(Address*, IpcHandle, unsigned);
  int (*close_shared_memory)(Address);
  int (*allocate_host)(void**, size_t, unsigned);
  int (*free_host)(void*);
  int (*memory_info)(size_t* free, size_t* total);
  int (*copy_on)(Address to, Address from, size_t, Handle stream);
  int (*create_stream)(Handle*, unsigned);
  int (*destroy_stream)(Handle);
  int (*synchronize)(Handle stream);
  int (*is_capturing)(Handle stream, int*);
  int (*begin_capture)(Handle stream, int mode);
  int (*end_capture)(Handle stream, Handle* graph);
  // `last`: the nodes that the next call of the stream will follow.
  int (*capture_state)(Handle stream, int* state, uint64_t* id, Handle* graph, const Handle** last,
                       size_t* count);
  int (*exchange_capture_mode)(int*);
  int (*create_event)(Handle*, unsigned);
  int (*destroy_event)(Handle);
  int (*query_event)(Handle);
  int (*record)(Handle event, Handle stream);
  int (*record_with)(Handle event, Handle stream, unsigned flags);
  int (*elapsed)(float* milliseconds, Handle begin, Handle end);
  int (*wait)(Handle stream, Handle event, unsigned);
  int (*encode_tiled)(void* map, int dtype, uint32_t rank, void* memory, const uint64_t* extents,
                      const uint64_t* strides, const uint32_t* box, const uint32_t* steps, int interleave,
                      int swizzle, int promotion, int fill);
  int (*encode_windows)(void* map, int dtype, uint32_t rank, void* memory, const uint64_t* extents,
                        const uint64_t* strides, const int* lower, const int* upper, uint32_t channels,
                        uint32_t places, const uint32_t* steps, int interleave, int swizzle, int promotion,
                        int fill);
  int (*launch)(const LaunchConfig*, Handle function, void** arguments, void** extra);
  int (*instantiate)(Handle* executable, Handle graph, unsigned long long flags);
  int (*launch_graph)(Handle executable, Handle stream);
  int (*set_kernel)(Handle executable, Handle node, const KernelNode*);  // of launches from now on
  int (*destroy_executable)(Handle);
  int (*destroy_graph)(Handle);

  uint32_t forks;  // fork_count() of the process that started it: a forked child cannot use it
};

// Null if there is no driver; `reason` then lists what was tried.
const Driver* open_driver(const char** reason);

// DeviceError INGOT-D407 in a child that was forked after the driver was started: no call works there.
void require_own_process(const Driver& driver);

// DeviceError INGOT-D403 with the driver's name of the error if `result` is not success; INGOT-D301 if it is
// out of memory, D406 if the GPU failed, after which no call works.
void check(const Driver& driver, int result, const char* call);

}  // namespace ingot::core::cuda
