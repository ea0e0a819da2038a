// SPDX-License-Identifier: Apache-2.0
// A libcuda.so.1 for machines without a GPU: device memory is memory of the host, each stream is a thread
// that runs copies in order, and launches compute nothing. FAKE_GPUS is how many GPUs there are (1), FAKE_GPU
// their compute capability (90). At exit it prints what it was asked for, so that tests of the executor see
// what a GPU would do. Calls that need the context of a GPU, and are made in another, are counted. After
// FAKE_FAILS_AFTER launches the GPU has failed; in forked children of who started it, nothing works. With
// FAKE_PEERS GPUs reach each other's memory, also in other processes, and the kernels with which ranks reduce
// do so.
#include <atomic>
#include <climits>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <initializer_list>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <pthread.h>

#include "fake_streams.h"

namespace {

constexpr int kMostDevices = 8;

std::atomic<int> launches = 0, graph_launches = 0, captures = 0, fetches = 0, compiled = 0, wrong = 0,
                 pushed = 0, updates = 0;
std::atomic<int> used[kMostDevices];  // launches and graph launches
std::atomic<bool> is_timed = false;
Object contexts[kMostDevices];
// Alive until the last call.
auto& mutex = *new std::mutex;
auto& pinned = *new std::set<void*>;
auto& allocated = *new std::map<void*, int>;  // on which device
auto& streams = *new std::vector<Stream*>;
thread_local std::vector<Object*> current;
bool is_started = false, is_forked = false;

int number_of(const char* variable, int otherwise) {
  const char* const text = std::getenv(variable);
  return text == nullptr ? otherwise : std::atoi(text);
}
// What each call returns where none works, or 0.
int failure() {
  static const int most = number_of("FAKE_FAILS_AFTER", INT_MAX);
  return is_forked ? 3 : launches + graph_launches >= most ? 700 : 0;
}
#define RETURN_FAILURE() \
  if (const int failed = failure(); failed != 0) return failed

int count() { return number_of("FAKE_GPUS", 1); }
int current_device() {
  if (!current.empty()) return static_cast<int>(current.back() - contexts);
  ++wrong;
  return 0;
}
template <typename Handle>
Handle* own(void* handle) {
  auto* object = static_cast<Handle*>(handle);
  if (object->device != current_device()) ++wrong;
  return object;
}
template <typename Handle>
int make(void** handle) {
  auto* made = new Handle{};
  made->device = current_device();
  *handle = made;
  return 0;
}
void check_memory(uint64_t address) {
  const std::scoped_lock lock(mutex);
  auto* const start = reinterpret_cast<void*>(address);
  auto found = allocated.upper_bound(start);
  if (found == allocated.begin()) return;  // of the host
  --found;
  const auto size = static_cast<std::byte*>(start) - static_cast<std::byte*>(found->first);
  if (size == 0 && found->second != current_device()) ++wrong;
}

std::string numbers(std::initializer_list<std::pair<int, const char*>> counted) {
  std::string text;
  for (const auto& [count, what] : counted)
    text += (text.empty() ? "" : ", ") + std::to_string(count) + ' ' + what;
  return text + '\n';
}

// Written at once: other processes may be writing to the same file.
struct Summary {
  ~Summary() {
    std::string text = "fake GPU: " + numbers({{launches.load(), "launches"},
                                               {captures.load(), "captures"},
                                               {graph_launches.load(), "graph launches"},
                                               {static_cast<int>(allocated.size()), "allocations left"}});
    text += "fake GPU: " + numbers({{fetches.load(), "copies from pinned memory"},
                                    {compiled.load(), "modules of PTX"},
                                    {peer_kernels.load(), "reductions by peers"},
                                    {peer_kernels_with_next.load(), "with what follows"},
                                    {updates.load(), "kernels updated"}});
    for (int device = 0; count() > 1 && device < count(); ++device)
      text += "fake GPU " + std::to_string(device) + ": " + numbers({{used[device].load(), "launches"}});
    if (count() > 1)
      text += "fake GPU: " +
              numbers({{wrong.load(), "calls in a wrong context"}, {pushed.load(), "contexts left current"}});
    std::fputs(text.c_str(), stderr);
  }
} summary;

}  // namespace

extern "C" {
using Address = unsigned long long;

// For libraries that enqueue work of their own.
void fake_enqueue(void* stream, void (*run)(void*), void* user) {
  static_cast<Stream*>(stream)->add([=] { run(user); });
}
int fake_device(void* stream) { return static_cast<Stream*>(stream)->device; }

int cuInit(unsigned) {
  if (!is_started) pthread_atfork(nullptr, nullptr, [] { is_forked = true; });
  is_started = true;
  return is_forked ? 3 : 0;
}
int cuGetErrorName(int error, const char** name) {
  *name = error == 3     ? "CUDA_ERROR_NOT_INITIALIZED"
          : error == 700 ? "CUDA_ERROR_ILLEGAL_ADDRESS"
                         : "CUDA_ERROR_FAKE";
  return 0;
}
int cuDeviceGetCount(int* devices) {
  RETURN_FAILURE();
  return *devices = count(), 0;
}
int cuDeviceGet(int* device, int index) { return *device = index, index < count() ? 0 : 101; }
int cuDeviceGetUuid_v2(char* uuid, int device) {
  std::snprintf(uuid, 16, "fake GPU %d", std::getenv("FAKE_SAME_GPU") != nullptr ? 0 : device);
  return 0;
}
int cuDeviceGetAttribute(int* value, int attribute, int) {
  const int number = number_of("FAKE_GPU", 90);  // its compute capability: 120 for 12.0
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
int cuDevicePrimaryCtxRetain(void** context, int device) {
  contexts[device].device = device;
  return *context = &contexts[device], 0;
}
int cuCtxGetCurrent(void** context) {
  if (is_forked) return 3;
  return *context = current.empty() ? nullptr : current.back(), 0;
}
int cuCtxPushCurrent_v2(void* context) {
  RETURN_FAILURE();
  return current.push_back(static_cast<Object*>(context)), ++pushed, 0;
}
int cuCtxPopCurrent_v2(void** context) {
  if (current.empty()) return 201;
  *context = current.back();
  return current.pop_back(), --pushed, 0;
}
int cuModuleLoadData(void** module, const void* code) {
  RETURN_FAILURE();
  compiled += std::memcmp(code, "\177ELF", 4) != 0 ? 1 : 0;
  return make<Object>(module);
}
int cuModuleUnload(void* module) {
  RETURN_FAILURE();
  return delete own<Object>(module), 0;
}
int cuModuleGetFunction(void** function, void* module, const char* name) {
  RETURN_FAILURE();
  own<Object>(module)->kernel = find_peer_kernel(name);
  return *function = module, 0;
}
int cuFuncSetAttribute(void*, int, int) { return 0; }
int cuFuncGetAttribute(int* value, int, void*) { return *value = 0, 0; }
int cuMemAlloc_v2(Address* address, size_t bytes) {
  RETURN_FAILURE();
  void* const memory = allocate_shared(bytes);
  if (memory == nullptr) return 2;
  const std::scoped_lock lock(mutex);
  allocated[memory] = current_device();
  return *address = reinterpret_cast<Address>(memory), 0;
}
int cuMemFree_v2(Address address) {
  RETURN_FAILURE();
  void* const memory = reinterpret_cast<void*>(address);
  {
    const std::scoped_lock lock(mutex);
    const auto found = allocated.find(memory);
    if (found == allocated.end()) return 1;
    if (found->second != current_device()) ++wrong;
    allocated.erase(found);
  }
  for (Stream* stream : streams) stream->wait();  // as a GPU does
  return free_shared(memory), 0;
}
int cuCtxEnablePeerAccess(void*, unsigned) { return has_peers() ? 0 : 217; }
int cuIpcGetMemHandle(SharedMemory* handle, Address address) {
  return share(reinterpret_cast<void*>(address), *handle) ? 0 : 801;
}
int cuIpcOpenMemHandle_v2(Address* address, SharedMemory handle, unsigned) {
  void* const memory = open_shared(handle);
  return *address = reinterpret_cast<Address>(memory), memory == nullptr ? 201 : 0;
}
int cuIpcCloseMemHandle(Address address) { return free_shared(reinterpret_cast<void*>(address)), 0; }
int cuMemHostAlloc(void** memory, size_t bytes, unsigned) {
  RETURN_FAILURE();
  *memory = std::calloc(bytes, 1);
  const std::scoped_lock lock(mutex);
  pinned.insert(*memory);
  return 0;
}
int cuMemFreeHost(void* memory) {
  RETURN_FAILURE();
  const std::scoped_lock lock(mutex);
  pinned.erase(memory);
  return std::free(memory), 0;
}
int cuMemGetInfo_v2(size_t* free, size_t* total) { return *free = *total = size_t{1} << 34, 0; }
int cuMemcpy(Address to, Address from, size_t bytes) {
  std::memmove(reinterpret_cast<void*>(to), reinterpret_cast<void*>(from), bytes);
  return 0;
}
int cuMemcpyAsync(Address to, Address from, size_t bytes, void* stream) {
  RETURN_FAILURE();
  {
    const std::scoped_lock lock(mutex);
    fetches += pinned.count(reinterpret_cast<void*>(from)) > 0 ? 1 : 0;
  }
  check_memory(to);
  return own<Stream>(stream)->add([=] { cuMemcpy(to, from, bytes); }), 0;
}
int cuStreamCreate(void** stream, unsigned) {
  RETURN_FAILURE();
  make<Stream>(stream);
  const std::scoped_lock lock(mutex);
  return streams.push_back(static_cast<Stream*>(*stream)), 0;
}
int cuStreamDestroy_v2(void*) { return 0; }  // its thread may still look at it
int cuStreamSynchronize(void* stream) {
  RETURN_FAILURE();
  return own<Stream>(stream)->wait(), 0;
}
int cuStreamIsCapturing(void* stream, int* state) {
  RETURN_FAILURE();
  return *state = own<Stream>(stream)->captured != nullptr ? 1 : 0, 0;
}
int cuStreamBeginCapture_v2(void* stream, int) {
  RETURN_FAILURE();
  own<Stream>(stream)->captured = new Graph{};
  static_cast<Stream*>(stream)->captured->device = current_device();
  return 0;
}
int cuStreamEndCapture(void* stream, void** graph) {
  RETURN_FAILURE();
  captures += is_timed ? 0 : 1;  // graphs with times in them are for profiles
  is_timed = false;
  *graph = own<Stream>(stream)->captured;
  return static_cast<Stream*>(stream)->captured = nullptr, 0;
}
// A node is the number of its work.
int cuStreamGetCaptureInfo_v2(void* stream, int* state, uint64_t*, void**, void* const** last,
                              size_t* count) {
  RETURN_FAILURE();
  thread_local void* node;
  const Graph* const captured = own<Stream>(stream)->captured;
  node = reinterpret_cast<void*>(captured->work.size());
  return *state = 1, *last = &node, *count = 1, 0;
}
int cuThreadExchangeStreamCaptureMode(int*) { return 0; }
int cuEventCreate(void** event, unsigned) {
  RETURN_FAILURE();
  return make<Event>(event);
}
int cuEventDestroy_v2(void* event) {
  RETURN_FAILURE();
  return delete own<Event>(event), 0;
}
int cuEventRecord(void* event, void* stream) {
  RETURN_FAILURE();
  auto done = std::make_shared<std::atomic<bool>>(false);
  if (own<Stream>(stream)->captured == nullptr) own<Event>(event)->done = done;
  static const int late = number_of("FAKE_LATE_EVENTS", 0);  // milliseconds, as of kernels before them
  return static_cast<Stream*>(stream)->add([done] {
    std::this_thread::sleep_for(std::chrono::milliseconds(late));
    *done = true;
  }),
         0;
}
int cuEventQuery(void* event) {
  RETURN_FAILURE();
  const auto& done = own<Event>(event)->done;
  return done == nullptr || *done ? 0 : 600;
}
int cuEventRecordWithFlags(void*, void*, unsigned) { return is_timed = true, 0; }
int cuEventElapsedTime(float* milliseconds, void*, void*) { return *milliseconds = 0.001f, 0; }
int cuStreamWaitEvent(void* stream, void* event, unsigned) {
  RETURN_FAILURE();
  const auto done = own<Event>(event)->done;
  if (static_cast<Stream*>(stream)->captured != nullptr || done == nullptr) return 0;
  static_cast<Stream*>(stream)->add([done] {
    while (!*done) std::this_thread::yield();
  });
  return 0;
}
int cuTensorMapEncodeTiled(void*, ...) { return 0; }
int cuTensorMapEncodeIm2col(void*, ...) { return 0; }
Work work_of_kernel(void* function, void** arguments) {
  const PeerKernel& kernel = own<Object>(function)->kernel;
  if (kernel.run == nullptr) return [] {};
  return [kernel, call = peer_call(kernel, arguments)] {
    kernel.run(call);
    peer_kernels_with_next += kernel.does_next ? 1 : 0;
  };
}
int cuLaunchKernelEx(const void* config, void* function, void** arguments, void**) {
  RETURN_FAILURE();
  void* stream = nullptr;
  std::memcpy(&stream, static_cast<const char*>(config) + 32, sizeof(stream));
  own<Stream>(stream)->add(work_of_kernel(function, arguments));
  const bool is_run = own<Stream>(stream)->captured == nullptr;
  used[current_device()] += is_run ? 1 : 0;
  return launches += is_run ? 1 : 0, 0;
}
int cuGraphExecKernelNodeSetParams_v2(void* graph, void* node, const void* kernel) {
  RETURN_FAILURE();
  void *function = nullptr, **arguments = nullptr;
  std::memcpy(&function, kernel, sizeof(function));
  std::memcpy(&arguments, static_cast<const char*>(kernel) + 40, sizeof(arguments));
  own<Graph>(graph)->work[reinterpret_cast<size_t>(node) - 1] = work_of_kernel(function, arguments);
  return ++updates, 0;
}
int cuGraphInstantiateWithFlags(void** executable, void* graph, unsigned long long) {
  RETURN_FAILURE();
  return *executable = new Graph(*own<Graph>(graph)), 0;
}
int cuGraphLaunch(void* graph, void* stream) {
  RETURN_FAILURE();
  ++used[current_device()];
  for (const Work& work : own<Graph>(graph)->work) own<Stream>(stream)->add(work);
  return ++graph_launches, 0;
}
int cuGraphExecDestroy(void* graph) {
  RETURN_FAILURE();
  return delete own<Graph>(graph), 0;
}
int cuGraphDestroy(void* graph) {
  RETURN_FAILURE();
  return delete own<Graph>(graph), 0;
}
}
