// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <unordered_map>
#include <vector>

#include "backends/cuda/execute/graph_cache.h"
#include "backends/cuda/execute/images.h"
#include "backends/cuda/execute/library_calls.h"
#include "runtime/memory.h"

namespace ingot::core::cuda {

// Enqueues spans on the caller's stream or its own, as one graph from their second use on. Kernels report
// errors in words of host memory, which the next call reads.
class CudaQueue final : public Queue {
 public:
  explicit CudaQueue(Device& device);
  ~CudaQueue() override;

  std::optional<CallFailure> run(const CallSpan& span) override;
  bool repeat(std::span<const uint64_t> identity, void* stream) override;
  std::optional<CallFailure> wait() override;
  void abandon() noexcept override;
  void follow_live(void* stream) override;
  bool time(const CallSpan& span, std::span<int64_t> nanoseconds) override;
  size_t scratch_bytes() const override { return scratch_.bytes(); }
  uint64_t recorded() const override { return recorded_; }
  OpenedGroup open_group(Communicator& group, uint64_t program) override;

 private:
  void begin_recording(const CallSpan& span);
  enum class Marks : uint8_t { kNone, kBetweenCalls };
  void list(const CallSpan& span, Marks marks = Marks::kNone);
  void list_collective(const Images& images, const KernelCall& call);
  bool lists_with_next(const Images& images, const CallSpan& span, uint32_t call);
  NcclGroup& group_of(const DeviceCollective& own) const;
  using GroupUses = std::span<const CallList::GroupUse>;
  void agree_on(GroupUses uses) const;
  static void follow_groups(GroupUses uses, Handle stream);
  static void watch_groups(GroupUses uses, Handle stream);
  void list_library_call(const KernelCall& call);
  void limit_library_calls();
  void list_launch(const Images& images, const KernelCall& call);
  size_t scratch_for(const CallSpan& span) const;
  void reserve_scratch(size_t bytes);
  int64_t blocks_of(const KernelCall& call) const;
  uint32_t slot_of(const Launch* launch);
  void follow(Handle stream);
  bool is_capturing(Handle stream);
  bool has_failed() const;
  std::optional<CallFailure> take_failure();

  static constexpr uint32_t kSlots = 1 << 14;

  Device& device_;
  Handle own_stream_ = nullptr, last_stream_ = nullptr, event_ = nullptr;
  struct Group {
    const Communicator* group;
    std::shared_ptr<NcclGroup> own;
  };
  std::vector<Group> groups_;  // their communicators outlive the graphs
  uint64_t program_ = 0;       // of the groups, for messages
  GraphCache graphs_;
  LibraryCalls library_;
  CallList calls_;
  CopyStream copies_;
  GrowingBlock scratch_;
  uint64_t recorded_ = 0;
  bool is_captured_ = false;              // the stream that the caller last named
  std::vector<Handle> marks_;             // events of `time`
  volatile int32_t* statuses_ = nullptr;  // pinned: one per launch
  std::shared_ptr<std::byte> status_memory_;
  std::vector<const Launch*> slots_;  // the launch of each status
  std::unordered_map<const Launch*, uint32_t> slot_of_;
};

}  // namespace ingot::core::cuda
