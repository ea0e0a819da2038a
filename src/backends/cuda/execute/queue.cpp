// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/execute/queue.h"

#include <algorithm>
#include <cstring>

#include "backends/cuda/execute/capture_mode.h"
#include "backends/cuda/images/library_call.h"
#include "backends/cuda/kernel_abi.h"
#include "support/error.h"

namespace ingot::core::cuda {
namespace {

int64_t groups_a_block(const Launch& launch) { return launch.constants[kBlock] / launch.constants[kGroup]; }

[[noreturn]] void throw_not_captured() {
  throw DeviceError("INGOT-D404",
                    "the engine cannot be captured: some of its steps run on the host, or follow a condition",
                    "leave these parts to torch, or run without capture");
}

}  // namespace

CudaQueue::CudaQueue(Device& device) : device_(device), graphs_(device), library_(device) {
  const CurrentContext current = device_.enter();
  constexpr unsigned kNonBlocking = 1, kWithoutTimes = 2;
  const Driver& driver = device_.driver();
  check(driver, driver.create_stream(&own_stream_, kNonBlocking), "cuStreamCreate");
  check(driver, driver.create_event(&event_, kWithoutTimes), "cuEventCreate");
  status_memory_ = device_.allocate_pinned(kSlots * sizeof(int32_t));
  std::memset(status_memory_.get(), 0, kSlots * sizeof(int32_t));
  statuses_ = reinterpret_cast<int32_t*>(status_memory_.get());
  last_stream_ = own_stream_;
}

CudaQueue::~CudaQueue() {
  const CurrentContext current = device_.enter_to_free();
  device_.driver().synchronize(last_stream_);
  for (const Handle mark : marks_) device_.driver().destroy_event(mark);
  copies_.destroy(device_.driver());
  // Graphs refer to what NCCL freed with a communicator that failed.
  if (std::ranges::any_of(groups_, [](const Group& each) { return each.own->has_failed(); })) graphs_.leak();
  graphs_.clear();  // before the code of libraries, which is unloaded with their plans
  device_.driver().destroy_event(event_);
  device_.driver().destroy_stream(own_stream_);
}

std::optional<CallFailure> CudaQueue::run(const CallSpan& span) {
  const CurrentContext current = device_.enter();
  if (auto failure = take_failure()) [[unlikely]]
    return failure;
  const Driver& driver = device_.driver();
  const Handle stream = span.stream != nullptr ? span.stream : own_stream_;
  const bool capturing = is_capturing(stream);
  if (!capturing)
    follow(stream);
  else
    begin_recording(span);
  list(span);
  agree_on(calls_.groups());
  if (!capturing) follow_groups(calls_.groups(), stream);
  copies_.prepare(driver, calls_.fetches());
  const bool overlap = device_.overlaps_kernels() && static_cast<const Images&>(*span.images).may_overlap;
  const Handle graph =
      !capturing && !span.moves && !span.one_by_one ? graphs_.find(calls_, overlap, span.identity) : nullptr;
  if (graph != nullptr)
    check(driver, driver.launch_graph(graph, stream), "cuGraphLaunch");
  else
    calls_.enqueue(driver, stream, copies_, overlap, {});
  if (!capturing) watch_groups(calls_.groups(), stream);
  return std::nullopt;
}

// To list calls and to compare them takes the host longer than all the rest.
bool CudaQueue::repeat(std::span<const uint64_t> identity, void* stream) {
  const ExecutableGraph* const graph = graphs_.find_named(identity);
  if (graph == nullptr) return false;
  const CurrentContext current = device_.enter();
  const Handle on = stream != nullptr ? stream : own_stream_;
  if (has_failed() || is_capturing(on)) return false;
  follow(on);
  agree_on(graph->groups());
  follow_groups(graph->groups(), on);
  check(device_.driver(), device_.driver().launch_graph(graph->handle(), on), "cuGraphLaunch");
  watch_groups(graph->groups(), on);
  return true;
}

OpenedGroup CudaQueue::open_group(Communicator& group, uint64_t program) {
  const std::shared_ptr<NcclGroup> own = NcclGroup::open(group, device_, program);
  program_ = program;
  if (own->reason().empty()) groups_.push_back({&group, own});
  return {.over_host = own->reason(), .no_peers = own->peer_reason()};
}

// Before collectives that this rank has not enqueued before: whether all ranks are about to do the same.
void CudaQueue::agree_on(GroupUses uses) const {
  for (const CallList::GroupUse& use : uses) use.group->agree({program_, use.history, use.elements});
}

void CudaQueue::follow_groups(GroupUses uses, Handle stream) {
  for (const CallList::GroupUse& use : uses) use.group->follow(stream);
}

void CudaQueue::watch_groups(GroupUses uses, Handle stream) {
  for (const CallList::GroupUse& use : uses) use.group->watch(stream, use.history);
}

// The caller's stream is being captured.
void CudaQueue::begin_recording(const CallSpan& span) {
  if (span.moves) throw_not_captured();
  ++recorded_;
  scratch_.keep_outgrown();
}

// As one graph with events between the calls, so that no time of the host is measured. Kernels do not
// overlap.
bool CudaQueue::time(const CallSpan& span, std::span<int64_t> nanoseconds) {
  constexpr double kNanoseconds = 1e6;  // per millisecond
  if (span.moves) return false;
  const CurrentContext current = device_.enter();
  const Driver& driver = device_.driver();
  const Handle stream = span.stream != nullptr ? span.stream : own_stream_;
  if (is_capturing(stream)) return false;
  follow(stream);
  while (marks_.size() <= span.calls.size()) {
    marks_.push_back(nullptr);
    check(driver, driver.create_event(&marks_.back(), 0), "cuEventCreate");
  }
  list(span, Marks::kBetweenCalls);
  agree_on(calls_.groups());
  follow_groups(calls_.groups(), stream);
  const ExecutableGraph graph = graphs_.capture(calls_, false, marks_);
  check(driver, driver.launch_graph(graph.handle(), stream), "cuGraphLaunch");
  watch_groups(calls_.groups(), stream);
  check(driver, driver.synchronize(stream), "cuStreamSynchronize");
  for (size_t i = 0; i < span.calls.size(); ++i) {
    float milliseconds = 0;
    check(driver, driver.elapsed(&milliseconds, marks_[i], marks_[i + 1]), "cuEventElapsedTime");
    nanoseconds[i] = static_cast<int64_t>(milliseconds * kNanoseconds);
  }
  return true;
}

// A call that is captured waits for earlier ones where it needs more memory.
std::optional<CallFailure> CudaQueue::wait() {
  const CurrentContext current = device_.enter();
  const RelaxedCapture relaxed(device_.driver());
  check(device_.driver(), device_.driver().synchronize(last_stream_), "cuStreamSynchronize");
  for (const Group& each : groups_) each.own->require_intact();
  return take_failure();
}

// What is captured does not run, and to wait for anything would end the capture.
void CudaQueue::abandon() noexcept {
  if (!is_captured_) Queue::abandon();
}

bool CudaQueue::is_capturing(Handle stream) {
  int capturing = 0;
  check(device_.driver(), device_.driver().is_capturing(stream, &capturing), "cuStreamIsCapturing");
  return is_captured_ = capturing != 0;
}

void CudaQueue::follow_live(void* stream) {
  const CurrentContext current = device_.enter();
  if (stream == nullptr) return;
  if (is_capturing(stream)) throw_not_captured();
  follow(stream);
}

// Work that was enqueued on another stream runs first.
void CudaQueue::follow(Handle stream) {
  if (stream == last_stream_) [[likely]]
    return;
  const Driver& driver = device_.driver();
  check(driver, driver.record(event_, last_stream_), "cuEventRecord");
  check(driver, driver.wait(stream, event_, 0), "cuStreamWaitEvent");
  last_stream_ = stream;
}

void CudaQueue::list(const CallSpan& span, Marks marks) {
  const auto& images = static_cast<const Images&>(*span.images);
  reserve_scratch(scratch_for(span));
  calls_.clear();
  limit_library_calls();
  uint32_t started = 0, awaited = 0, done = kNoId;
  for (uint32_t i = 0; i < span.calls.size(); ++i) {
    const KernelCall& call = span.calls[i];
    if (marks == Marks::kBetweenCalls) calls_.add_mark(i);
    for (; started < span.prefetches.size() && span.prefetches[started].start <= i; ++started) {
      const Prefetch& fetch = span.prefetches[started];
      calls_.add_fetch(fetch.from, fetch.to, fetch.bytes);
    }
    const uint32_t before = awaited;
    while (awaited < span.prefetches.size() && span.prefetches[awaited].before <= i) ++awaited;
    const bool is_apart = awaited < span.prefetches.size() && span.prefetches[awaited].before == i + 1;
    if (awaited > before) calls_.add_wait(awaited - 1);
    if (i == done) continue;  // with the one before
    if (call.collective != nullptr && !is_apart && lists_with_next(images, span, i))
      done = i + 1;
    else if (call.collective != nullptr)
      list_collective(images, call);
    else if (call.launch != nullptr && calls_library(*call.launch))
      list_library_call(call);
    else if (call.launch != nullptr)
      list_launch(images, call);
    else if (*call.sizes > 0)
      calls_.add_copy(call.buffers[0], call.buffers[1], static_cast<size_t>(*call.sizes));
  }
  if (marks == Marks::kBetweenCalls) calls_.add_mark(static_cast<uint32_t>(span.calls.size()));
}

void CudaQueue::list_collective(const Images& images, const KernelCall& call) {
  const DeviceCollective& own = *call.collective;
  if (own.bytes == 0 && own.received.empty() && own.elements == 0) return;
  if (own.group == nullptr) return calls_.add_copy(call.buffers[0], call.buffers[1], own.bytes);
  NcclGroup& group = group_of(own);
  if (group.is_by_peers(own))
    return calls_.add_peer_kernel(group, own, images.functions[own.image], call.buffers[0], call.buffers[1]);
  calls_.add_collective(group, own, call.buffers[0], call.buffers[1]);
}

NcclGroup& CudaQueue::group_of(const DeviceCollective& own) const {
  const auto found = std::ranges::find(groups_, own.group, &Group::group);
  if (found == groups_.end()) throw InternalError("a group was not opened in this queue");
  return *found->own;
}

// A reduction and the launch behind it as one kernel; false: they are two calls.
bool CudaQueue::lists_with_next(const Images& images, const CallSpan& span, uint32_t i) {
  const KernelCall& call = span.calls[i];
  const DeviceCollective& own = *call.collective;
  if (own.with_next == kNoId || own.group == nullptr || own.elements == 0 || i + 1 == span.calls.size())
    return false;
  NcclGroup& group = group_of(own);
  const KernelCall& next = span.calls[i + 1];
  if (!group.is_by_peers(own) || !group.peers().does_next() || calls_library(*next.launch)) return false;
  calls_.add_peer_kernel(group, own, images.functions[own.with_next], call.buffers[0], call.buffers[1]);
  for (const void* buffer : next.buffers) calls_.add_argument(address(buffer));
  for (size_t k = 0; k < next.launch->symbols.size(); ++k)
    calls_.add_argument(static_cast<uint64_t>(next.symbols[k]));
  return true;
}

void CudaQueue::list_library_call(const KernelCall& call) {
  const LibraryPlans::Planned* planned = library_.prepare(call);
  if (planned == nullptr) return;
  calls_.add_library_call(*planned->call, planned->number, library_.arguments_of(call, scratch_.reserve(0)));
}

// The plans of many shapes go with the graphs that refer to them; not if a caller's graphs may.
void CudaQueue::limit_library_calls() {
  if (!library_.is_full() || recorded_ > 0) return;
  const RelaxedCapture relaxed(device_.driver());
  check(device_.driver(), device_.driver().synchronize(last_stream_), "cuStreamSynchronize");
  graphs_.clear();
  library_.clear();
}

void CudaQueue::list_launch(const Images& images, const KernelCall& call) {
  const Launch& launch = *call.launch;
  const int64_t blocks = blocks_of(call);
  if (blocks == 0) return;
  calls_.add_launch(images.functions[launch.image], static_cast<uint32_t>(blocks),
                    static_cast<uint32_t>(launch.constants[kBlock]),
                    static_cast<uint32_t>(call.sizes[kSharedBytes]));
  for (const void* buffer : call.buffers) calls_.add_argument(address(buffer));
  for (size_t i = 0; i < launch.symbols.size(); ++i)
    calls_.add_argument(static_cast<uint64_t>(call.symbols[i]));
  calls_.add_argument(call.sizes[kScratchBytes] > 0 ? address(scratch_.reserve(0)) : 0);
  calls_.add_argument(address(const_cast<int32_t*>(statuses_) + slot_of(&launch)));
  for (size_t i = 0; i < tensor_maps_of(launch); ++i) {
    const int64_t* const constants = launch.constants.data() + kLaunchConstants + i * kMapConstants;
    calls_.add_map(call.buffers[static_cast<size_t>(constants[kMapBuffer])], constants,
                   call.sizes + kLaunchSizes + i * kMapSizes);
  }
}

// Kernels with scratch memory launch no more blocks than can be resident.
int64_t CudaQueue::blocks_of(const KernelCall& call) const {
  constexpr int64_t kMostBlocks = 1 << 20, kBlocksAtOnce = 8;
  const int64_t most = call.sizes[kScratchBytes] > 0 ? device_.processors() * kBlocksAtOnce : kMostBlocks;
  const int64_t groups = groups_a_block(*call.launch), cluster = call.launch->constants[kCluster];
  return std::clamp<int64_t>((call.sizes[kItems] + groups - 1) / groups, 0, most / cluster) * cluster;
}

size_t CudaQueue::scratch_for(const CallSpan& span) const {
  int64_t most = 0;
  for (const KernelCall& call : span.calls) {
    if (call.launch == nullptr || call.sizes[kScratchBytes] <= 0) continue;
    if (calls_library(*call.launch)) {
      most = std::max(most, call.sizes[kScratchBytes]);
      continue;
    }
    int64_t bytes = 0;
    if (__builtin_mul_overflow(call.sizes[kScratchBytes], blocks_of(call) * groups_a_block(*call.launch),
                               &bytes))
      bytes = INT64_MAX;
    most = std::max(most, bytes);
  }
  return static_cast<size_t>(most);
}

// Graphs that were captured with other scratch memory are of calls that will not come again.
void CudaQueue::reserve_scratch(size_t bytes) {
  if (bytes > scratch_.bytes()) graphs_.forget_names();
  scratch_.reserve(bytes, &device_);
}

uint32_t CudaQueue::slot_of(const Launch* launch) {
  const auto [entry, is_new] = slot_of_.try_emplace(launch, static_cast<uint32_t>(slots_.size()));
  if (is_new) slots_.push_back(launch);
  if (slots_.size() > kSlots) throw InternalError("an engine has too many steps for a queue");
  return entry->second;
}

bool CudaQueue::has_failed() const {
  return std::any_of(statuses_, statuses_ + slots_.size(), [](int32_t status) { return status != 0; });
}

std::optional<CallFailure> CudaQueue::take_failure() {
  std::optional<CallFailure> failure;
  for (size_t i = 0; i < slots_.size(); ++i) {
    if (statuses_[i] == 0) [[likely]]
      continue;
    if (!failure) failure = CallFailure{slots_[i], statuses_[i]};
    statuses_[i] = 0;
  }
  return failure;
}

}  // namespace ingot::core::cuda
