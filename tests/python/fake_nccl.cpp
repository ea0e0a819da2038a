// SPDX-License-Identifier: Apache-2.0
// A libnccl.so.2 over the fake driver: ranks are threads or processes of one machine, which exchange files in
// a folder named after the communicator's number. Collectives run on the threads of streams, also from
// graphs, and sum in the order of the ranks. Every call answers "in progress" first, as communicators without
// blocking do. FAKE_NCCL_VERSION is the version (22907). At exit it prints what it was asked for.
#include <dlfcn.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "fake_numbers.h"

namespace {

namespace fs = std::filesystem;
using Bytes = std::vector<char>;
constexpr int kSuccess = 0, kInvalid = 4, kInProgress = 7;

std::atomic<int> enqueued = 0, executed = 0, communicators = 0, aborted = 0;

struct Summary {
  ~Summary() {
    std::fprintf(stderr, "fake NCCL: %d collectives enqueued, %d run, %d communicators left, %d aborted\n",
                 enqueued.load(), executed.load(), communicators.load(), aborted.load());
  }
} summary;

struct Communicator {
  fs::path folder;
  int rank = 0, size = 0, device = -1;
  uint64_t next = 0;             // of what streams run
  std::atomic<int> pending = 0;  // answers that are "in progress"
  std::atomic<bool> is_aborted = false;

  fs::path file(const std::string& what, int of) const { return folder / (what + "." + std::to_string(of)); }
  void publish(const std::string& what, const Bytes& bytes) const {
    const fs::path made = file(what, rank), part = made.string() + ".part";
    std::ofstream(part, std::ios::binary).write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
    fs::rename(part, made);
  }
  bool has_all(const std::string& what) const {
    for (int other = 0; other < size; ++other)
      if (!fs::exists(file(what, other))) return false;
    return true;
  }
  // Empty after an abort.
  std::vector<Bytes> exchange(const Bytes& own) {
    const std::string what = "work" + std::to_string(next++);
    publish(what, own);
    while (!has_all(what)) {
      if (is_aborted) return {};
      std::this_thread::sleep_for(std::chrono::microseconds(200));
    }
    std::vector<Bytes> all;
    for (int other = 0; other < size; ++other) {
      std::ifstream in(file(what, other), std::ios::binary);
      all.emplace_back(std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>());
    }
    return all;
  }
};

template <typename T>
void reduce(const std::vector<Bytes>& all, size_t first, size_t count, int reduction, char* to) {
  for (size_t i = 0; i < count; ++i) {
    const auto value = [&](const Bytes& bytes) {
      T element;
      std::memcpy(&element, bytes.data() + (first + i) * sizeof(T), sizeof(T));
      return wide(element);
    };
    auto result = value(all[0]);
    for (size_t rank = 1; rank < all.size(); ++rank) {
      const auto next = value(all[rank]);
      result = reduction == 1   ? static_cast<decltype(result)>(result * next)
               : reduction == 2 ? std::max(result, next)
               : reduction == 3 ? std::min(result, next)
                                : static_cast<decltype(result)>(result + next);
    }
    if (reduction == 4) result = static_cast<decltype(result)>(result / static_cast<int>(all.size()));
    const T element = narrow<T>(result);
    std::memcpy(to + i * sizeof(T), &element, sizeof(T));
  }
}

constexpr size_t kWidths[] = {1, 1, 4, 4, 8, 8, 2, 4, 8, 2};
void reduce_as(int dtype, const std::vector<Bytes>& all, size_t first, size_t count, int reduction,
               char* to) {
  constexpr void (*kReduce[])(const std::vector<Bytes>&, size_t, size_t, int, char*) = {
      reduce<int8_t>,   reduce<uint8_t>, reduce<int32_t>, reduce<uint32_t>, reduce<int64_t>,
      reduce<uint64_t>, reduce<Half>,    reduce<float>,   reduce<double>,   reduce<Brain>};
  kReduce[dtype](all, first, count, reduction, to);
}

void* driver() {
  static void* const library = dlopen("libcuda.so.1", RTLD_NOW);
  return library;
}
template <typename Function>
Function* in_driver(const char* name) {
  return reinterpret_cast<Function*>(dlsym(driver(), name));
}
int current_device() {
  void* context = nullptr;
  in_driver<int(void**)>("cuCtxGetCurrent")(&context);
  return context == nullptr ? -1 : *static_cast<int*>(context);
}

int enqueue(Communicator* own, void* stream, std::function<void()> work) {
  if (own->is_aborted || in_driver<int(void*)>("fake_device")(stream) != own->device) return kInvalid;
  ++enqueued;
  in_driver<void(void*, void (*)(void*), void*)>("fake_enqueue")(
      stream,
      [](void* user) {
        ++executed;
        (*static_cast<std::function<void()>*>(user))();
      },
      new std::function<void()>(std::move(work)));
  own->pending = 1;
  return kInProgress;
}

// What is between ncclGroupStart and ncclGroupEnd in this thread.
struct Block {
  char* data;
  size_t bytes;
  int rank;
  bool is_sent;
};
thread_local std::vector<Block> blocks;
thread_local Communicator* group_owner = nullptr;
thread_local void* group_stream = nullptr;

void exchange_blocks(Communicator* own, const std::vector<Block>& all) {
  Bytes message(static_cast<size_t>(own->size) * 8);
  for (int rank = 0; rank < own->size; ++rank) {
    uint64_t length = 0;
    for (const Block& each : all)
      if (each.is_sent && each.rank == rank) {
        length += each.bytes;
        message.insert(message.end(), each.data, each.data + each.bytes);
      }
    std::memcpy(message.data() + rank * 8, &length, 8);
  }
  const std::vector<Bytes> messages = own->exchange(message);
  if (messages.empty()) return;
  for (const Block& each : all) {
    if (each.is_sent) continue;
    const Bytes& theirs = messages[static_cast<size_t>(each.rank)];
    size_t start = static_cast<size_t>(own->size) * 8;
    for (int rank = 0; rank < own->rank; ++rank) {
      uint64_t length = 0;
      std::memcpy(&length, theirs.data() + rank * 8, 8);
      start += length;
    }
    std::memcpy(each.data, theirs.data() + start, each.bytes);
  }
}

}  // namespace

extern "C" {
struct Id {
  char bytes[128];
};

int ncclGetVersion(int* version) {
  const char* const wanted = std::getenv("FAKE_NCCL_VERSION");
  return *version = wanted == nullptr ? 22907 : std::atoi(wanted), kSuccess;
}
const char* ncclGetErrorString(int) { return "fake NCCL error"; }
const char* ncclGetLastError(void*) { return ""; }
int ncclGetUniqueId(Id* id) {
  const char* const multicast = std::getenv("NCCL_NVLS_ENABLE");
  if (multicast == nullptr || std::strcmp(multicast, "0") != 0) return kInvalid;
  *id = {};
  std::snprintf(id->bytes, sizeof(id->bytes), "%s", (fs::temp_directory_path() / "fake_ncclXXXXXX").c_str());
  return mkdtemp(id->bytes) == nullptr ? kInvalid : kSuccess;
}
int ncclCommInitRankConfig(void** communicator, int size, Id id, int rank, void* config) {
  int blocking = 1;
  std::memcpy(&blocking, static_cast<char*>(config) + 16, sizeof(blocking));
  if (blocking != 0 || std::getenv("FAKE_NCCL_BROKEN") != nullptr) return kInvalid;
  auto* own = new Communicator;
  own->folder = id.bytes;
  own->rank = rank;
  own->size = size;
  own->device = current_device();
  own->publish("init", {});
  ++communicators;
  return *communicator = own, kInProgress;
}
int ncclCommGetAsyncError(void* communicator, int* state) {
  auto* own = static_cast<Communicator*>(communicator);
  *state = own->pending-- > 0 || !own->has_all("init") ? kInProgress : kSuccess;
  own->pending = std::max(own->pending.load(), 0);
  return kSuccess;
}
int ncclCommAbort(void* communicator) {
  static_cast<Communicator*>(communicator)->is_aborted = true;
  while (std::getenv("FAKE_NCCL_ABORT_WAITS") != nullptr)  // as for graphs that never go
    std::this_thread::sleep_for(std::chrono::seconds(1));
  return --communicators, ++aborted, kSuccess;
}
int ncclCommDestroy(void* communicator) {
  static_cast<Communicator*>(communicator)->is_aborted = true;
  return --communicators, kSuccess;
}
int ncclAllReduce(const void* from, void* to, size_t count, int dtype, int reduction, void* communicator,
                  void* stream) {
  auto* own = static_cast<Communicator*>(communicator);
  return enqueue(own, stream, [=] {
    const auto* start = static_cast<const char*>(from);
    const auto all = own->exchange({start, start + count * kWidths[dtype]});
    if (!all.empty()) reduce_as(dtype, all, 0, count, reduction, static_cast<char*>(to));
  });
}
int ncclReduceScatter(const void* from, void* to, size_t count, int dtype, int reduction, void* communicator,
                      void* stream) {
  auto* own = static_cast<Communicator*>(communicator);
  return enqueue(own, stream, [=] {
    const auto* start = static_cast<const char*>(from);
    const auto size = static_cast<size_t>(own->size);
    const auto all = own->exchange({start, start + size * count * kWidths[dtype]});
    if (!all.empty())
      reduce_as(dtype, all, static_cast<size_t>(own->rank) * count, count, reduction, static_cast<char*>(to));
  });
}
int ncclAllGather(const void* from, void* to, size_t count, int dtype, void* communicator, void* stream) {
  auto* own = static_cast<Communicator*>(communicator);
  return enqueue(own, stream, [=] {
    const auto* start = static_cast<const char*>(from);
    auto* target = static_cast<char*>(to);
    for (const Bytes& each : own->exchange({start, start + count * kWidths[dtype]}))
      target = std::copy(each.begin(), each.end(), target);
  });
}
int ncclBroadcast(const void* from, void* to, size_t count, int dtype, int source, void* communicator,
                  void* stream) {
  auto* own = static_cast<Communicator*>(communicator);
  return enqueue(own, stream, [=] {
    const auto* start = static_cast<const char*>(from);
    const auto all = own->exchange({start, start + count * kWidths[dtype]});
    if (all.empty()) return;
    const Bytes& given = all[static_cast<size_t>(source)];
    std::copy(given.begin(), given.end(), static_cast<char*>(to));
  });
}
int ncclGroupStart() { return blocks.clear(), kSuccess; }
int ncclSend(const void* from, size_t bytes, int, int rank, void* communicator, void* stream) {
  group_owner = static_cast<Communicator*>(communicator);
  group_stream = stream;
  return blocks.push_back({static_cast<char*>(const_cast<void*>(from)), bytes, rank, true}), kSuccess;
}
int ncclRecv(void* to, size_t bytes, int, int rank, void* communicator, void* stream) {
  group_owner = static_cast<Communicator*>(communicator);
  group_stream = stream;
  return blocks.push_back({static_cast<char*>(to), bytes, rank, false}), kSuccess;
}
int ncclGroupEnd() {
  return enqueue(group_owner, group_stream, [own = group_owner, all = blocks] { exchange_blocks(own, all); });
}
}
