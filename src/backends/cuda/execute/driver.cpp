// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/execute/driver.h"

#include <algorithm>
#include <array>

#include <fmt/core.h>

#include "support/error.h"
#include "support/fork.h"
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
  get("cuStreamGetCaptureInfo_v2", driver.capture_state);
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
  get("cuGraphExecKernelNodeSetParams_v2", driver.set_kernel);
  get("cuGraphExecDestroy", driver.destroy_executable);
  get("cuGraphDestroy", driver.destroy_graph);
}

// Illegal addresses and instructions, exceptions of the hardware and failed memory, as cuda.h numbers them.
bool is_lasting(int result) {
  constexpr std::array kLasting = {214, 220, 700, 702, 709, 710, 714, 715, 716, 717, 718, 719};
  return std::ranges::find(kLasting, result) != kLasting.end();
}

const char* error_name(const Driver& driver, int result) {
  const char* name = nullptr;
  driver.error_name(result, &name);
  return name == nullptr ? "an unknown error" : name;
}

OpenedFunctions<Driver> start_driver() {
  constexpr int kNotInitialized = 3;
  OpenedFunctions<Driver> opened = open_functions(kDriverFiles, find_driver_functions);
  if (!opened.functions) return opened;
  opened.functions->forks = fork_count();
  const int result = opened.functions->init(0);
  if (result == 0) return opened;
  const char* const cause = result == kNotInitialized
                                ? ", as in processes that were forked after another library had started it"
                                : "";
  return {std::nullopt,
          fmt::format("its driver does not start: {}{}", error_name(*opened.functions, result), cause)};
}

}  // namespace

const Driver* open_driver(const char** reason) {
  static const OpenedFunctions<Driver> opened = start_driver();
  return opened.get(reason);
}

void require_own_process(const Driver& driver) {
  if (driver.forks == fork_count()) [[likely]]
    return;
  throw DeviceError(
      "INGOT-D407", "CUDA was started before this process was forked, and cannot be used in it",
      "start processes that use a GPU by \"spawn\" or \"forkserver\", or fork before a GPU is used");
}

void check(const Driver& driver, int result, const char* call) {
  constexpr int kOutOfMemory = 2;
  if (result == 0) [[likely]]
    return;
  if (result == kOutOfMemory)
    throw DeviceError("INGOT-D301", "the GPU is out of memory", "use smaller shapes or free memory");
  const char* const name = error_name(driver, result);
  if (is_lasting(result))
    throw DeviceError(
        "INGOT-D406", fmt::format("the GPU failed ({}), and this process cannot use it any more", name),
        "start a new process; any kernel that it ran may be the cause: compute-sanitizer names it");
  throw DeviceError("INGOT-D403", fmt::format("{} failed: {}", call, name));
}

}  // namespace ingot::core::cuda
