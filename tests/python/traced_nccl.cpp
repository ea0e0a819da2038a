// SPDX-License-Identifier: Apache-2.0
// Stands before NCCL, which $TRACED_NCCL names, and writes each call into the file $NCCL_TRACE: a line when
// it begins, and one when it has returned. So the file shows in which call a rank is that hangs.
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>

#include "backends/cuda/execute/nccl.h"

namespace {

using ingot::core::cuda::Handle;
using ingot::core::cuda::NcclConfig;
using ingot::core::cuda::NcclId;

template <typename Function>
Function* find(const char* name) {
  static void* const library = [] {
    const char* file = std::getenv("TRACED_NCCL");
    void* opened = dlopen(file == nullptr ? "libnccl.so.2" : file, RTLD_NOW | RTLD_LOCAL);
    if (opened == nullptr) {
      std::fprintf(stderr, "traced_nccl: %s\n", dlerror());
      std::abort();
    }
    return opened;
  }();
  return reinterpret_cast<Function*>(dlsym(library, name));
}

double seconds() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

// One write, so that lines stay whole and none is lost when the process is killed.
template <typename... Values>
void write_line(const char* form, Values... values) {
  static const int file = [] {
    const char* name = std::getenv("NCCL_TRACE");
    return name == nullptr ? STDERR_FILENO : open(name, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
  }();
  char line[256];
  const int length = std::snprintf(line, sizeof(line), form, values...);
  if (length > 0) static_cast<void>(!write(file, line, static_cast<size_t>(length)));
}

class Call {
 public:
  explicit Call(const char* name) : name_(name) {
    char thread[32] = "";
    pthread_getname_np(pthread_self(), thread, sizeof(thread));
    write_line("%d %.3f begins %s by %s\n", number_, seconds(), name_, thread);
  }
  int returned(int result) const {
    write_line("%d %.3f returned %d from %s\n", number_, seconds(), result, name_);
    return result;
  }

 private:
  static inline std::atomic<int> count{0};
  const int number_ = ++count;
  const char* const name_;
};

}  // namespace

extern "C" {

#define TRACED(name, parameters, arguments)                \
  int name parameters {                                    \
    static auto* const real = find<int parameters>(#name); \
    const Call call(#name);                                \
    return call.returned(real arguments);                  \
  }

TRACED(ncclGetUniqueId, (NcclId * id), (id))
TRACED(ncclCommInitRankConfig, (Handle * made, int size, NcclId id, int rank, NcclConfig* config),
       (made, size, id, rank, config))
TRACED(ncclCommAbort, (Handle communicator), (communicator))
TRACED(ncclCommDestroy, (Handle communicator), (communicator))
TRACED(ncclAllReduce,
       (const void* from, void* to, size_t count, int dtype, int reduction, Handle communicator,
        Handle stream),
       (from, to, count, dtype, reduction, communicator, stream))
TRACED(ncclReduceScatter,
       (const void* from, void* to, size_t count, int dtype, int reduction, Handle communicator,
        Handle stream),
       (from, to, count, dtype, reduction, communicator, stream))
TRACED(ncclAllGather,
       (const void* from, void* to, size_t count, int dtype, Handle communicator, Handle stream),
       (from, to, count, dtype, communicator, stream))
TRACED(ncclBroadcast,
       (const void* from, void* to, size_t count, int dtype, int source, Handle communicator, Handle stream),
       (from, to, count, dtype, source, communicator, stream))
TRACED(ncclSend, (const void* from, size_t count, int dtype, int rank, Handle communicator, Handle stream),
       (from, count, dtype, rank, communicator, stream))
TRACED(ncclRecv, (void* to, size_t count, int dtype, int rank, Handle communicator, Handle stream),
       (to, count, dtype, rank, communicator, stream))
TRACED(ncclGroupStart, (), ())
TRACED(ncclGroupEnd, (), ())

// Called by the thousand, or at once done.
int ncclCommGetAsyncError(Handle communicator, int* state) {
  static auto* const real = find<int(Handle, int*)>("ncclCommGetAsyncError");
  return real(communicator, state);
}
int ncclGetVersion(int* version) { return find<int(int*)>("ncclGetVersion")(version); }
const char* ncclGetErrorString(int error) { return find<const char*(int)>("ncclGetErrorString")(error); }
const char* ncclGetLastError(Handle communicator) {
  return find<const char*(Handle)>("ncclGetLastError")(communicator);
}

}  // extern "C"
