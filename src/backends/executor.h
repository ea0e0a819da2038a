// SPDX-License-Identifier: Apache-2.0
// What the runtime asks of a backend: make images callable, and run spans of kernel calls on a queue.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/engine_file.h"

namespace ingot::core {

struct MemoryAllocator;
class Communicator;
class ThreadPool;

// Memory of a device, which the host cannot touch.
class DeviceMemory {
 public:
  virtual ~DeviceMemory() = default;
  // Aligned to 256 bytes, not initialized. DeviceError INGOT-D301 if there is none left.
  virtual std::shared_ptr<std::byte> allocate(size_t bytes) = 0;
  // To the device, from it, or on it: done when it returns. Waits for no queue: whoever enqueued work that
  // touches the memory waits for it first.
  virtual void copy(std::byte* to, const std::byte* from, size_t bytes) = 0;
  // Memory of the host that queues can copy from while the host does something else, and that kernels can
  // read. DeviceError INGOT-D301.
  virtual std::shared_ptr<std::byte> allocate_pinned(size_t bytes) = 0;
  virtual size_t free_bytes() const = 0;  // for new allocations
};

// Images of one engine, ready to run. Immutable, shared by contexts.
class LoadedImages {
 public:
  virtual ~LoadedImages() = default;
  std::string note;  // what differs from when the engine was built, for the log; "": nothing
};

// A collective that the devices of the ranks do together, without the host: from buffers[0] of its call to
// buffers[1].
struct DeviceCollective {
  enum class Kind : uint8_t { kAllReduce, kReduceScatter, kAllGather, kAllToAll, kBroadcast };
  enum class Reduction : uint8_t { kSum, kProduct, kMax, kMin, kAverage };
  Kind kind = Kind::kAllReduce;
  Reduction reduction = Reduction::kSum;
  DType dtype = DType::kF32;      // of what is reduced
  Communicator* group = nullptr;  // that the queue has opened; null: of this rank alone
  int source = 0;                 // kBroadcast
  ImageId image = kNoId;      // of the engine: a kernel that reduces over memory of the other ranks' devices
  ImageId with_next = kNoId;  // ... and then does the launch of the call behind it
  // kAllReduce: of a tensor; kReduceScatter: of a result; kAllToAll: of a row, which all ranks have in common
  size_t elements = 0;
  size_t bytes = 0;                    // of the operand; kAllToAll of several ranks: of a row
  std::vector<size_t> sent, received;  // kAllToAll: bytes, by rank
};

// As nodes and routines call them.
inline constexpr std::array<std::pair<std::string_view, DeviceCollective::Reduction>, 5> kReductions = {
    {{"sum", DeviceCollective::Reduction::kSum},
     {"product", DeviceCollective::Reduction::kProduct},
     {"max", DeviceCollective::Reduction::kMax},
     {"min", DeviceCollective::Reduction::kMin},
     {"avg", DeviceCollective::Reduction::kAverage}}};

// One call with everything evaluated. Without a launch it copies sizes[0] bytes from buffers[0] to
// buffers[1], which may be the same memory.
struct KernelCall {
  const Launch* launch = nullptr;
  std::span<void* const> buffers;
  const int64_t* symbols = nullptr;              // values of Launch::symbols
  const int64_t* sizes = nullptr;                // ... and of Launch::sizes
  const DeviceCollective* collective = nullptr;  // instead of a launch or a copy
};

inline void copy_on_host(const KernelCall& call) {
  if (*call.sizes > 0) std::memmove(call.buffers[1], call.buffers[0], static_cast<size_t>(*call.sizes));
}

// A copy beside the calls, from pinned memory of the host: it may start once calls[0, start) are done, and is
// done before calls[before] starts.
struct Prefetch {
  const void* from;
  void* to;
  size_t bytes;
  uint32_t start, before;
};

// Calls in order, between two points where the host has to see a value.
struct CallSpan {
  const LoadedImages* images = nullptr;
  std::span<const KernelCall> calls;
  ThreadPool* pool = nullptr;  // of the caller
  void* stream = nullptr;      // of the caller, on devices that have streams; null: the queue's own
  bool moves = false;          // copies between the host and the device, and nothing else
  std::span<const Prefetch> prefetches = {};  // by `start`, and by `before`
  bool one_by_one = false;                    // not as a graph
  // What this context's calls follow from: spans with equal words do the same on the same addresses. Empty:
  // unknown.
  std::span<const uint64_t> identity = {};
};

// Of the DeviceError where a library that a call needs refuses it: nothing of the call ran.
inline constexpr std::string_view kRefusedByLibrary = "INGOT-D405";

// The call that met a value it cannot use.
struct CallFailure {
  const Launch* launch = nullptr;
  int64_t status = 0;  // a loops::KernelStatus
};

// How the collectives of a group will be done, on all ranks alike.
struct OpenedGroup {
  std::string over_host;  // why the devices cannot do them; "": they can
  std::string no_peers;   // why a library does short reductions too; "": devices do them themselves
};

// Where one context's work on one device goes, in order. Used by one thread at a time.
class Queue {
 public:
  virtual ~Queue() = default;
  // Runs the calls, up to the first that fails, or enqueues them: then the failure is one of an earlier span.
  // DeviceError if memory or the device gives out.
  virtual std::optional<CallFailure> run(const CallSpan& span) = 0;
  // Does what `run` does for a span of this identity, if that is at hand; false: it is not, and nothing is
  // done.
  virtual bool repeat(std::span<const uint64_t> /*identity*/, void* /*stream*/) { return false; }
  // Until all work is done; the first failure since the last that was told.
  virtual std::optional<CallFailure> wait() { return std::nullopt; }
  // After a run that failed, whose memory the caller is about to release: waits for what was enqueued, and
  // forgets failures.
  virtual void abandon() noexcept {
    try {
      wait();
    } catch (...) {
    }
  }
  virtual size_t scratch_bytes() const { return 0; }  // that it holds
  // Before the first collective over the group in this queue; all of its ranks call it. DeviceError
  // INGOT-D35x if a rank is missing. `program`: BoundGroups::program.
  virtual OpenedGroup open_group(Communicator& /*group*/, uint64_t /*program*/) {
    return {.over_host = "this backend has no collectives", .no_peers = {}};
  }
  // Before the host reads a value that work on `stream` makes: the next wait covers it. DeviceError if the
  // caller records what is enqueued there.
  virtual void follow_live(void* /*stream*/) {}
  // Runs the span and waits, one call after another, each of which took so long by the device's clock; false:
  // it cannot, and has done nothing.
  virtual bool time(const CallSpan&, std::span<int64_t> /*nanoseconds*/) { return false; }
  // How many spans a caller has recorded, to repeat them at any time: no memory that these use may be freed.
  virtual uint64_t recorded() const { return 0; }
};

// The most that a device does in a second by its clocks and units; 0: unknown.
struct DeviceRates {
  double bytes = 0;  // of its memory
  double half_operations = 0, float_operations = 0, double_operations = 0;
};

class Executor {
 public:
  virtual ~Executor() = default;
  virtual std::string_view name() const = 0;
  virtual int device_count() const { return 0; }  // GPUs of this machine that it could run on
  // This one for GPU `index` of the machine, of backends that have several. DeviceError INGOT-D402 for a
  // number that no machine has; a GPU that this one does not have is an error of whatever uses it.
  virtual const Executor& on_device(int /*index*/) const { return *this; }
  virtual bool is_present() const { return true; }  // whether its device is in this machine
  // The model of the processor that runs its kernels: "NVIDIA H200"; "": unknown.
  virtual std::string processor() const { return {}; }
  virtual DeviceRates rates() const { return {}; }
  // Names what is enqueued between the two calls for tools that watch the device; they may be nested.
  virtual void begin_range(const char* /*name*/) const {}
  virtual void end_range() const {}
  // What this machine lacks to run an image of this backend, for people: "avx512_bf16"; "": nothing.
  virtual std::string missing(const Image& image) const = 0;
  // UserError INGOT-U22x says what this machine lacks ("needs avx512_bf16").
  virtual std::unique_ptr<LoadedImages> load(const EngineData& data, const EngineFile* file) const = 0;
  // Whether `launch`, of a kernel with so many buffers, has the sizes and constants of this backend, in their
  // ranges.
  virtual bool is_valid(const Launch& launch, size_t buffers) const = 0;
  // The same of launches that the backend does not do by the code of their image: whether it fits the image
  // and its arguments, so that nothing beyond them is touched.
  virtual bool fits(const Launch&, const Image&, std::span<const TensorType* const>) const { return true; }
  // `allocator` (null: the system) gives the queue's memory on the host, and outlives it.
  virtual std::unique_ptr<Queue> open_queue(const MemoryAllocator* allocator = nullptr) const = 0;
  // Where its kernels find their buffers; null: in memory of the host.
  virtual DeviceMemory* memory() const { return nullptr; }
};

}  // namespace ingot::core
