// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "backends/cuda/execute/copy_stream.h"
#include "backends/cuda/execute/driver.h"
#include "backends/cuda/execute/nccl_group.h"
#include "backends/cuda/execute/prepared_call.h"
#include "backends/cuda/execute/tensor_map.h"
#include "support/hash.h"

namespace ingot::core::cuda {

// Launches and copies with everything resolved, as one list of words: equal lists do the same work on the
// same addresses, so that the graph of one can be launched for the other.
class CallList {
 public:
  // The collectives of a list over one group.
  struct GroupUse {
    NcclGroup* group;
    uint64_t history, elements;  // of all of them, without addresses
  };

  void clear() {
    words_.clear();
    groups_.clear();
    fetches_ = 0;
  }
  std::span<const GroupUse> groups() const { return groups_; }
  uint32_t fetches() const { return fetches_; }
  void add_copy(const void* from, void* to, size_t bytes);
  // A copy beside the calls that follow; the launches after `add_wait` wait for the fetches up to `fetch`.
  void add_fetch(const void* from, void* to, size_t bytes);
  void add_wait(uint32_t fetch);
  // A collective of ranks; the group outlives the list.
  void add_collective(NcclGroup& group, const DeviceCollective& collective, const void* from, void* to);
  // The same by a kernel of the GPUs themselves: a launch. Arguments of the call behind it may follow.
  void add_peer_kernel(NcclGroup& group, const DeviceCollective& collective, Handle function,
                       const void* from, void* to);
  // A call of a library, which outlives the list; `number` is its own for ever.
  void add_library_call(const PreparedCall& call, uint64_t number, const PreparedCall::Arguments& arguments);
  // Records event `number` of those that `enqueue` gets, also at each replay.
  void add_mark(uint32_t number);
  // Arguments follow by `add_argument`, then tensor maps by `add_map`.
  void add_launch(Handle function, uint32_t grid, uint32_t block, uint32_t shared_bytes);
  void add_argument(uint64_t value);
  // `constants`, which must outlive the list, and `sizes` are one map's (kernel_abi.h).
  void add_map(const void* buffer, const int64_t* constants, const int64_t* sizes);

  bool operator==(const CallList& other) const { return words_ == other.words_; }
  Checksum checksum() const;
  // Whether the lists differ in arguments of launches alone.
  bool is_like(const CallList& other) const;

  // What whoever captures the stream adds to a list, and gets of it.
  struct Captured {
    std::span<const Handle> marks;         // the events of the list's marks
    std::vector<Handle>* nodes = nullptr;  // gets the node of each launch, if the stream is capturing
  };
  // Enqueues them in order on `stream`, which may be capturing, and fetches on `copies`.
  // `overlap`: a kernel may start before its predecessor has finished, as kernel_abi.h specifies.
  void enqueue(const Driver& driver, Handle stream, CopyStream& copies, bool overlap,
               const Captured& captured);
  // Gives the launches of `executable`, which was captured of a list like this one and does the work of
  // `old`, the arguments of this list.
  void update(const Driver& driver, const CallList& old, Handle executable, std::span<const Handle> nodes);

 private:
  enum class Way : uint8_t { kNccl, kPeers };
  void add_use(NcclGroup& group, const DeviceCollective& own, Way way);
  void enqueue_collective(const uint64_t* words, Handle stream) const;
  static void enqueue_library_call(const Driver& driver, const uint64_t* words, Handle stream);
  size_t words_of(size_t i) const;
  void collect_arguments(const Driver& driver, uint64_t* launch);
  void encode_maps(const Driver& driver, const uint64_t* words, size_t count);

  std::vector<uint64_t> words_;
  std::vector<GroupUse> groups_;
  uint32_t fetches_ = 0;
  size_t counter_ = 0;  // of the last launch's arguments, in `words_`
  // Space for those of one launch.
  std::vector<void*> arguments_;
  std::vector<EncodedMap> maps_;
};

}  // namespace ingot::core::cuda
