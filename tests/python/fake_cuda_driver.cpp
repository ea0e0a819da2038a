// SPDX-License-Identifier: Apache-2.0
// A libcuda.so.1 for machines without a GPU: device memory is memory of the host, streams run at once, and
// launches compute nothing. At exit it prints what it was asked for, so that tests of the executor see what a
// GPU would do.
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <set>

namespace {
int launches = 0, graph_launches = 0, captures = 0, allocations = 0, fetches = 0, compiled = 0;
bool capturing = false, is_timed = false;
auto& pinned = *new std::set<void*>;  // alive until the last call
char object;                          // what every handle points to

struct Summary {
  ~Summary() {
    std::fprintf(stderr, "fake GPU: %d launches, %d captures, %d graph launches, %d allocations left\n",
                 launches, captures, graph_launches, allocations);
    std::fprintf(stderr, "fake GPU: %d copies from pinned memory, %d modules of PTX\n", fetches, compiled);
  }
} summary;
}  // namespace

extern "C" {
using Address = unsigned long long;
int cuInit(unsigned) { return 0; }
int cuGetErrorName(int, const char** name) { return *name = "CUDA_ERROR_FAKE", 0; }
int cuDeviceGetCount(int* count) { return *count = 1, 0; }
int cuDeviceGet(int* device, int) { return *device = 0, 0; }
int cuDeviceGetAttribute(int* value, int attribute, int) {
  const char* const wanted = std::getenv("FAKE_GPU");  // its compute capability: 120 for 12.0
  const int number = wanted == nullptr ? 90 : std::atoi(wanted);
  const int shared = number == 80 ? 166912 : number < 90 || number >= 120 ? 101376 : 232448;
  *value = attribute == 13   ? 1980000
           : attribute == 36 ? 3201000
           : attribute == 37 ? 6144
           : attribute == 75 ? number / 10
           : attribute == 76 ? number % 10
           : attribute == 97 ? shared
                             : 132;
  return 0;
}
int cuDeviceGetName(char* name, int bytes, int) {
  std::snprintf(name, static_cast<size_t>(bytes), "fake GPU");
  return 0;
}
int cuGetExportTable(const void** table, const void*) { return *table = nullptr, 500; }  // NVRTC calls it
int cuDevicePrimaryCtxRetain(void** context, int) { return *context = &object, 0; }
int cuCtxGetCurrent(void** context) { return *context = &object, 0; }
int cuCtxSetCurrent(void*) { return 0; }
int cuModuleLoadData(void** module, const void* code) {
  compiled += std::memcmp(code, "\177ELF", 4) != 0 ? 1 : 0;
  return *module = &object, 0;
}
int cuModuleUnload(void*) { return 0; }
int cuModuleGetFunction(void** function, void*, const char*) { return *function = &object, 0; }
int cuFuncSetAttribute(void*, int, int) { return 0; }
int cuFuncGetAttribute(int* value, int, void*) { return *value = 0, 0; }
int cuMemAlloc_v2(Address* address, size_t bytes) {
  *address = reinterpret_cast<Address>(std::calloc(bytes, 1));
  allocations += *address != 0 ? 1 : 0;
  return *address == 0 ? 2 : 0;
}
int cuMemFree_v2(Address address) {
  --allocations;
  std::free(reinterpret_cast<void*>(address));
  return 0;
}
int cuMemHostAlloc(void** memory, size_t bytes, unsigned) {
  *memory = std::calloc(bytes, 1);
  pinned.insert(*memory);
  return 0;
}
int cuMemFreeHost(void* memory) {
  pinned.erase(memory);
  return std::free(memory), 0;
}
int cuMemGetInfo_v2(size_t* free, size_t* total) { return *free = *total = size_t{1} << 34, 0; }
int cuMemcpy(Address to, Address from, size_t bytes) {
  std::memmove(reinterpret_cast<void*>(to), reinterpret_cast<void*>(from), bytes);
  return 0;
}
int cuMemcpyAsync(Address to, Address from, size_t bytes, void*) {
  fetches += pinned.count(reinterpret_cast<void*>(from)) > 0 ? 1 : 0;
  return capturing ? 0 : cuMemcpy(to, from, bytes);
}
int cuStreamCreate(void** stream, unsigned) { return *stream = &object, 0; }
int cuStreamDestroy_v2(void*) { return 0; }
int cuStreamSynchronize(void*) { return 0; }
int cuStreamIsCapturing(void*, int* state) { return *state = 0, 0; }
int cuStreamBeginCapture_v2(void*, int) { return capturing = true, 0; }
int cuStreamEndCapture(void*, void** graph) {
  captures += is_timed ? 0 : 1;  // graphs with times in them are for profiles
  capturing = is_timed = false;
  return *graph = &object, 0;
}
int cuEventCreate(void** event, unsigned) { return *event = &object, 0; }
int cuEventDestroy_v2(void*) { return 0; }
int cuEventRecord(void*, void*) { return 0; }
int cuEventRecordWithFlags(void*, void*, unsigned) { return is_timed = true, 0; }
int cuEventElapsedTime(float* milliseconds, void*, void*) { return *milliseconds = 0.001f, 0; }
int cuStreamWaitEvent(void*, void*, unsigned) { return 0; }
int cuTensorMapEncodeTiled(void*, ...) { return 0; }
int cuTensorMapEncodeIm2col(void*, ...) { return 0; }
int cuLaunchKernelEx(const void*, void*, void**, void**) { return launches += capturing ? 0 : 1, 0; }
int cuGraphInstantiateWithFlags(void** executable, void*, unsigned long long) {
  return *executable = &object, 0;
}
int cuGraphLaunch(void*, void*) { return ++graph_launches, 0; }
int cuGraphExecDestroy(void*) { return 0; }
int cuGraphDestroy(void*) { return 0; }
}
