// SPDX-License-Identifier: Apache-2.0
// A libcuda.so.1 for machines without a GPU: device memory is host memory, streams run at once, and a launch
// adds its first i64 argument behind the buffers... nothing computes. It counts calls, so that tests of the
// executor see what a GPU would be asked.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>

namespace {
int launches = 0, graph_launches = 0, captures = 0;
bool capturing = false;
char object;  // what every handle points to
}  // namespace

extern "C" {
using Address = unsigned long long;
int fake_launches() { return launches; }
int fake_graph_launches() { return graph_launches; }
int fake_captures() { return captures; }

int cuInit(unsigned) { return 0; }
int cuGetErrorName(int, const char** name) { return *name = "CUDA_ERROR_FAKE", 0; }
int cuDeviceGetCount(int* count) { return *count = 1, 0; }
int cuDeviceGet(int* device, int) { return *device = 0, 0; }
int cuDeviceGetAttribute(int* value, int attribute, int) {
  *value = attribute == 75 ? 9 : attribute == 76 ? 0 : attribute == 97 ? 232448 : 132;
  return 0;
}
int cuDeviceGetName(char* name, int length, int) { return std::strncpy(name, "fake", length), 0; }
int cuDevicePrimaryCtxRetain(void** context, int) { return *context = &object, 0; }
int cuCtxGetCurrent(void** context) { return *context = &object, 0; }
int cuCtxSetCurrent(void*) { return 0; }
int cuModuleLoadData(void** module, const void*) { return *module = &object, 0; }
int cuModuleUnload(void*) { return 0; }
int cuModuleGetFunction(void** function, void*, const char*) { return *function = &object, 0; }
int cuFuncSetAttribute(void*, int, int) { return 0; }
int cuFuncGetAttribute(int* value, int, void*) { return *value = 0, 0; }
int cuMemAlloc_v2(Address* address, size_t bytes) {
  *address = reinterpret_cast<Address>(std::calloc(bytes, 1));
  return *address == 0 ? 2 : 0;
}
int cuMemFree_v2(Address address) { return std::free(reinterpret_cast<void*>(address)), 0; }
int cuMemGetInfo_v2(size_t* free, size_t* total) { return *free = *total = size_t{1} << 30, 0; }
int cuMemHostAlloc(void** memory, size_t bytes, unsigned) { return *memory = std::calloc(bytes, 1), 0; }
int cuMemFreeHost(void* memory) { return std::free(memory), 0; }
int cuMemcpy(Address to, Address from, size_t bytes) {
  std::memmove(reinterpret_cast<void*>(to), reinterpret_cast<void*>(from), bytes);
  return 0;
}
int cuMemcpyAsync(Address to, Address from, size_t bytes, void*) {
  return capturing ? 0 : cuMemcpy(to, from, bytes);
}
int cuStreamCreate(void** stream, unsigned) { return *stream = &object, 0; }
int cuStreamDestroy_v2(void*) { return 0; }
int cuStreamSynchronize(void*) { return 0; }
int cuStreamIsCapturing(void*, int* state) { return *state = 0, 0; }
int cuStreamBeginCapture_v2(void*, int) { return capturing = true, 0; }
int cuStreamEndCapture(void*, void** graph) {
  capturing = false;
  ++captures;
  return *graph = &object, 0;
}
int cuEventCreate(void** event, unsigned) { return *event = &object, 0; }
int cuEventDestroy_v2(void*) { return 0; }
int cuEventRecord(void*, void*) { return 0; }
int cuStreamWaitEvent(void*, void*, unsigned) { return 0; }
int cuLaunchKernelEx(const void*, void*, void**, void**) { return launches += capturing ? 0 : 1, 0; }
int cuGraphInstantiateWithFlags(void** executable, void*, unsigned long long) {
  return *executable = &object, 0;
}
int cuGraphLaunch(void*, void*) { return ++graph_launches, 0; }
int cuGraphExecDestroy(void*) { return 0; }
int cuGraphDestroy(void*) { return 0; }
}
