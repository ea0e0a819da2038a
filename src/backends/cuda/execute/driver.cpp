// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/execute/driver.h"

#include <fmt/core.h>

#include "support/error.h"
#include "support/library_files.h"

namespace ingot::core::cuda {
namespace {

#ifdef _WIN32
constexpr char kDriver[] = "nvcuda.dll";
#else
constexpr char kDriver[] = "libcuda.so.1";
#endif
constexpr LibraryFiles kDriverFiles{"its driver", nullptr, {kDriver}, "one for CUDA 12 or newer"};

void find_driver_functions(FunctionFinder& get, Driver& driver) {
  get("cuInit", driver.init);
  get("cuGetErrorName", driver.error_name);
  get("cuDeviceGetCount", driver.device_count);
  get("cuDeviceGet", driver.device);
  get("cuDeviceGetName", driver.device_name);
  get("cuDeviceGetAttribute", driver.attribute);
  get("cuDeviceGetUuid_v2", driver.unique_number);
  get("cuDevicePrimaryCtxRetain", driver.retain_context);
  get("cuCtxGetCurrent", driver.current_context);
  get("cuCtxPushCurrent_v2", driver.push_context);
  get("cuCtxPopCurrent_v2", driver.pop_context);
  get("cuModuleLoadData", driver.load_module);
  get("cuModuleUnload", driver.unload_module);
  get("cuModuleGetFunction", driver.function);
  get("cuFuncSetAttribute", driver.set_function_attribute);
  get("cuFuncGetAttribute", driver.function_attribute);
  get("cuMemAlloc_v2", driver.allocate);
  get("cuMemFree_v2", driver.free);
  get("cuCtxEnablePeerAccess", driver.enable_peer_access);
  get("cuIpcGetMemHandle", driver.share_memory);
  get("cuIpcOpenMemHandle_v2", driver.open_shared_memory);
  get("cuIpcCloseMemHandle", driver.close_shared_memory);
  get("cuMemHostAlloc", driver.allocate_host);
  get("cuMemFreeHost", driver.free_host);
  get("cuMemGetInfo_v2", driver.memory_info);
  get("cuMemcpyAsync", driver.copy_on);
  get("cuStreamCreate", driver.create_stream);
  get("cuStreamDestroy_v2", driver.destroy_stream);
  get("cuStreamSynchronize", driver.synchronize);
  get("cuStreamIsCapturing", driver.is_capturing);
  get("cuStreamBeginCapture_v2", driver.begin_capture);
  get("cuStreamEndCapture", driver.end_capture);
  get("cuThreadExchangeStreamCaptureMode", driver.exchange_capture_mode);
  get("cuEventCreate", driver.create_event);
  get("cuEventDestroy_v2", driver.destroy_event);
  get("cuEventQuery", driver.query_event);
  get("cuEventRecord", driver.record);
  get("cuEventRecordWithFlags", driver.record_with);
  get("cuEventElapsedTime", driver.elapsed);
  get("cuStreamWaitEvent", driver.wait);
  get("cuTensorMapEncodeTiled", driver.encode_tiled);
  get("cuTensorMapEncodeIm2col", driver.encode_windows);
  get("cuLaunchKernelEx", driver.launch);
  get("cuGraphInstantiateWithFlags", driver.instantiate);
  get("cuGraphLaunch", driver.launch_graph);
  get("cuGraphExecDestroy", driver.destroy_executable);
  get("cuGraphDestroy", driver.destroy_graph);
}

OpenedFunctions<Driver> start_driver() {
  OpenedFunctions<Driver> opened = open_functions(kDriverFiles, find_driver_functions);
  if (!opened.functions) return opened;
  const int result = opened.functions->init(0);
  if (result == 0) return opened;
  const char* name = "an unknown error";
  opened.functions->error_name(result, &name);
  return {std::nullopt, fmt::format("its driver does not start: {}", name)};
}

}  // namespace

const Driver* open_driver(const char** reason) {
  static const OpenedFunctions<Driver> opened = start_driver();
  return opened.get(reason);
}

void check(const Driver& driver, int result, const char* call) {
  constexpr int kOutOfMemory = 2;
  if (result == 0) [[likely]]
    return;
  if (result == kOutOfMemory)
    throw DeviceError("INGOT-D301", "the GPU is out of memory", "use smaller shapes or free memory");
  const char* name = nullptr;
  driver.error_name(result, &name);
  throw DeviceError("INGOT-D403", fmt::format("{} failed: {}", call, name == nullptr ? "unknown" : name),
                    "after most errors of a GPU a process cannot use it any more: start a new one");
}

}  // namespace ingot::core::cuda
