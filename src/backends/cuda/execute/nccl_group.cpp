// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/execute/nccl_group.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdlib>
#include <future>
#include <thread>
#include <utility>
#include <vector>

#include <fmt/core.h>

#include "backends/cuda/execute/capture_mode.h"
#include "backends/cuda/execute/nccl_meeting.h"
#include "support/error.h"
#include "support/system_threads.h"

namespace ingot::core::cuda {
namespace {

using Clock = std::chrono::steady_clock;
using Kind = DeviceCollective::Kind;

constexpr std::chrono::milliseconds kLook{20};      // between looks at work that goes on
constexpr std::chrono::milliseconds kReason{1000};  // for the group to say why NCCL failed
constexpr std::chrono::milliseconds kRest{1000};    // that a rank's work may take when another one has ended
constexpr std::chrono::microseconds kPoll{20};
constexpr std::chrono::milliseconds kAbort{500};  // that the end of a communicator usually needs less than

int nccl_type(DType dtype) {
  switch (dtype) {
    case DType::kI8:
      return 0;
    case DType::kU8:
      return 1;
    case DType::kI32:
      return 2;
    case DType::kU32:
      return 3;
    case DType::kI64:
      return 4;
    case DType::kU64:
      return 5;
    case DType::kF16:
      return 6;
    case DType::kF32:
      return 7;
    case DType::kF64:
      return 8;
    case DType::kBF16:
      return 9;
    default:
      throw InternalError("NCCL does not reduce this dtype");
  }
}

// ncclSum, ncclProd, ncclMax, ncclMin, ncclAvg: in the order of DeviceCollective::Reduction.
int nccl_reduction(DeviceCollective::Reduction reduction) { return static_cast<int>(reduction); }

}  // namespace

std::shared_ptr<NcclGroup> NcclGroup::open(Communicator& group, Device& device, uint64_t program) {
  std::shared_ptr<DeviceGroup>& own = group.device_group(&device);
  if (own == nullptr) {
    auto made = std::make_shared<NcclGroup>(group, device);
    made->meet(program);
    own = std::move(made);
  }
  return std::static_pointer_cast<NcclGroup>(own);
}

void NcclGroup::meet(uint64_t program) {
  const char* missing = nullptr;
  nccl_ = open_nccl(&missing);
  NcclMeeting meeting(*group_, program);
  Introduction own = introduce(device_, nccl_, missing);
  if (group_->rank() == 0 && nccl_ != nullptr) {
    const CurrentContext current = device_.enter();
    if (const int result = nccl_->make_id(&own.id); result != kNcclSuccess) own.refuse(problem_of(result));
  }
  std::string missing_peers;
  peers_ = PeerMemory::make(device_, missing_peers);
  if (peers_ != nullptr)
    own.peer = peers_->handle();
  else
    own.refuse_peers(missing_peers);
  const std::vector<Introduction> all = meeting.exchange(own);
  reason_ = reason_against(all);
  if (!reason_.empty()) {
    peers_ = nullptr;
    return;
  }
  Introduction outcome;
  if (!start(all[0].id)) outcome.refuse(reason_);
  peer_reason_ = first_peer_refusal(all);
  if (peer_reason_.empty()) outcome.refuse_peers(connect_peers(all));
  const std::vector<Introduction> outcomes = meeting.exchange(outcome);
  reason_ = first_refusal(outcomes);
  if (peer_reason_.empty()) peer_reason_ = first_peer_refusal(outcomes);
  if (!reason_.empty() || !peer_reason_.empty()) peers_ = nullptr;
  if (!reason_.empty()) abort();
}

// Why this rank cannot reach the memory of the others; "": it can.
std::string NcclGroup::connect_peers(const std::vector<Introduction>& all) {
  std::vector<PeerHandle> handles;
  for (const Introduction& each : all) handles.push_back(each.peer);
  return peers_->connect(handles, group_->rank());
}

bool NcclGroup::is_by_peers(const DeviceCollective& own) const {
  return peers_ != nullptr && own.image != kNoId &&
         own.bytes <= static_cast<size_t>(most_peer_bytes(group_->size()));
}

// False, with the reason, if NCCL cannot; throws if a rank is missing.
bool NcclGroup::start(const NcclId& id) {
  const CurrentContext current = device_.enter();
  const std::lock_guard lock(mutex_);
  NcclConfig config{.blocking = std::getenv("INGOT_NCCL_BLOCKING") != nullptr ? 1 : 0};
  work_.since = Clock::now();
  const int begun = nccl_->init(&communicator_, group_->size(), id, group_->rank(), &config);
  const int result = communicator_ == nullptr ? begun : wait_for(begun);
  if (result == kNcclSuccess) {
    constexpr unsigned kWithoutTimes = 2;
    for (Watched& each : watched_)
      check(device_.driver(), device_.driver().create_event(&each.event, kWithoutTimes), "cuEventCreate");
    return true;
  }
  reason_ = problem_of(result);
  return false;
}

std::string NcclGroup::problem_of(int result) const {
  const char* last = communicator_ == nullptr ? nullptr : nccl_->last_error(communicator_);
  return fmt::format("NCCL says: {}{}{}", nccl_->error_text(result),
                     last != nullptr && *last != '\0' ? ": " : "", last == nullptr ? "" : last);
}

// Until what was begun is done. Throws if a rank ends or hangs meanwhile.
int NcclGroup::wait_for(int result) {
  const DeviceWork work{.number = work_.number, .history = work_.history, .since = Clock::now()};
  auto next_look = Clock::now() + kLook;
  while (result == kNcclInProgress) {
    std::this_thread::sleep_for(kPoll);
    int state = kNcclSuccess;
    const int answer = nccl_->async_error(communicator_, &state);
    result = answer != kNcclSuccess ? answer : state;
    if (result != kNcclInProgress || Clock::now() < next_look) continue;
    next_look = Clock::now() + kLook;
    if (group_->watch(work)) continue;
    end(group_->failure_code(), group_->failure());
    throw_failure();
  }
  return result;
}

void NcclGroup::finish(int result, const char* call) {
  result = wait_for(result);
  if (result == kNcclSuccess) [[likely]]
    return;
  end_for(result, call);
  throw_failure();
}

// NCCL sees that a rank has ended, but not which: the group is asked for a moment.
void NcclGroup::end_for(int result, const char* call) {
  const std::string text = fmt::format("{} failed: {}", call, problem_of(result));
  const auto limit = Clock::now() + kReason;
  const DeviceWork work{.number = work_.number, .history = work_.history, .since = Clock::now()};
  while (Clock::now() < limit && group_->watch(work)) std::this_thread::sleep_for(kLook);
  if (group_->is_usable()) group_->leave(text);
  end(group_->failure_code(), group_->failure());
}

// The work of the GPU ends, and with it the communicator.
void NcclGroup::end(std::string_view code, const std::string& text) {
  if (!text_.empty()) return;
  code_ = code;
  text_ = text.empty() ? "the group has ended" : text;
  if (peers_ != nullptr) peers_->end();
  abort();
}

// Ends the work of the GPU at once, but may return no earlier than the graphs that NCCL is part of are gone:
// nobody waits for that.
void NcclGroup::abort() {
  if (communicator_ == nullptr) return;
  std::promise<void> ended;
  std::future<void> end = ended.get_future();
  const BlockedSignals blocked;
  std::thread thread([&nccl = *nccl_, &device = device_, communicator = std::exchange(communicator_, nullptr),
                      promise = std::move(ended)]() mutable {
    const CurrentContext current = device.enter();
    const RelaxedCapture relaxed(device.driver());
    nccl.abort(communicator);
    promise.set_value();
  });
  name_thread(thread, "ingot-nccl-end");
  thread.detach();
  end.wait_for(kAbort);
}

void NcclGroup::throw_failure() {
  if (std::exchange(is_told_, true))
    throw DeviceError("INGOT-D352", fmt::format("the group is unusable since an earlier failure: {}", text_),
                      std::string(advice_for_group("INGOT-D352")));
  throw DeviceError(code_, text_, std::string(advice_for_group(code_)));
}

void NcclGroup::require_intact() {
  const std::lock_guard lock(mutex_);
  if (!text_.empty()) throw_failure();
}

bool NcclGroup::has_failed() {
  const std::lock_guard lock(mutex_);
  return !text_.empty();
}

void NcclGroup::agree(const ExchangeTag& tag) {
  require_intact();
  if (agreed_.contains(tag.collective)) [[likely]]
    return;
  const auto ranks = static_cast<size_t>(group_->size());
  const std::vector<SentBlock> sent(ranks);
  const std::vector<ReceivedBlock> received(ranks);
  try {
    group_->exchange(sent, received, tag);
  } catch (const DeviceError& error) {
    const std::lock_guard lock(mutex_);
    is_told_ = true;
    end(error.details().code, error.details().message);
    throw;
  }
  agreed_.insert(tag.collective);
}

void NcclGroup::enqueue(const DeviceCollective& own, const void* from, void* to, Handle stream) {
  const std::lock_guard lock(mutex_);
  if (!text_.empty()) throw_failure();
  const Nccl& nccl = *nccl_;
  switch (own.kind) {
    case Kind::kAllReduce:
      return finish(nccl.all_reduce(from, to, own.elements, nccl_type(own.dtype),
                                    nccl_reduction(own.reduction), communicator_, stream),
                    "ncclAllReduce");
    case Kind::kReduceScatter:
      return finish(nccl.reduce_scatter(from, to, own.elements, nccl_type(own.dtype),
                                        nccl_reduction(own.reduction), communicator_, stream),
                    "ncclReduceScatter");
    case Kind::kAllGather:
      return finish(nccl.all_gather(from, to, own.bytes, kNcclBytes, communicator_, stream), "ncclAllGather");
    case Kind::kBroadcast:
      return finish(nccl.broadcast(from, to, own.bytes, kNcclBytes, own.source, communicator_, stream),
                    "ncclBroadcast");
    case Kind::kAllToAll:
      return exchange_blocks(own, from, to, stream);
  }
}

void NcclGroup::exchange_blocks(const DeviceCollective& own, const void* from, void* to, Handle stream) {
  const auto* source = static_cast<const std::byte*>(from);
  auto* target = static_cast<std::byte*>(to);
  int result = nccl_->begin_group();
  for (size_t rank = 0; rank < own.sent.size(); ++rank) {
    const auto add = [&](int next) {
      if (result == kNcclSuccess || result == kNcclInProgress) result = next;
    };
    const auto other = static_cast<int>(rank);
    if (own.sent[rank] > 0)
      add(nccl_->send(source, own.sent[rank], kNcclBytes, other, communicator_, stream));
    if (own.received[rank] > 0)
      add(nccl_->receive(target, own.received[rank], kNcclBytes, other, communicator_, stream));
    source += own.sent[rank];
    target += own.received[rank];
  }
  const int ended = nccl_->end_group();
  finish(result == kNcclSuccess || result == kNcclInProgress ? ended : result, "ncclSend and ncclRecv");
}

void NcclGroup::follow(Handle stream) {
  const std::lock_guard lock(mutex_);
  const Watched& latest = watched_[watched_[1].is_recorded ? 1 : 0];
  if (stream != stream_ && latest.is_recorded)
    check(device_.driver(), device_.driver().wait(stream, latest.event, 0), "cuStreamWaitEvent");
}

void NcclGroup::watch(Handle stream, uint64_t history) {
  const std::lock_guard lock(mutex_);
  if (!text_.empty() || group_ == nullptr) return;  // the next call says so
  stream_ = stream;
  group_->count_device_work();
  work_ = {
      .number = work_.number + 1, .history = extended_history(work_.history, history), .since = Clock::now()};
  Watched& own = watched_[watched_[0].is_recorded ? 1 : 0];
  check(device_.driver(), device_.driver().record(own.event, stream), "cuEventRecord");
  own.work = work_;
  own.is_recorded = true;
  if (watcher_.joinable()) {
    if (is_asleep_) changed_.notify_one();
    return;
  }
  const BlockedSignals blocked;
  watcher_ = std::thread([this] { run_watcher(); });
  name_thread(watcher_, "ingot-nccl");
}

void NcclGroup::run_watcher() {
  const CurrentContext current = device_.enter();
  const RelaxedCapture relaxed(device_.driver());
  std::unique_lock lock(mutex_);
  while (!is_over_) {
    is_asleep_ = !watched_[0].is_recorded;
    if (is_asleep_)
      changed_.wait(lock);
    else
      changed_.wait_for(lock, kLook);
    is_asleep_ = false;
    if (!is_over_ && watched_[0].is_recorded && text_.empty()) look(lock);
  }
}

// Whether the work that was enqueued first is done; the next one is looked at then.
bool NcclGroup::has_finished() {
  constexpr int kNotReady = 600;
  if (device_.driver().query_event(watched_[0].event) == kNotReady) return false;
  std::swap(watched_[0], watched_[1]);
  watched_[1].is_recorded = false;
  return true;
}

// At work that may be done.
void NcclGroup::look(std::unique_lock<std::mutex>& lock) {
  if (has_finished()) return;
  int state = kNcclSuccess;
  const int answer = nccl_->async_error(communicator_, &state);
  if (answer == kNcclSuccess && state != kNcclSuccess && state != kNcclInProgress)
    return end_for(state, "a collective");
  const DeviceWork work = watched_[0].work;
  Communicator& group = *group_;
  lock.unlock();
  const bool is_usable = group.watch(work);
  const std::string text = is_usable ? "" : group.failure();
  const std::string code(is_usable ? "" : group.failure_code());
  lock.lock();
  if (!is_usable && !finishes_alone(lock)) end(code, text);
}

// A rank that has finished may end before others, whose work needs it no more.
bool NcclGroup::finishes_alone(std::unique_lock<std::mutex>& lock) {
  const auto limit = Clock::now() + kRest;
  while (!is_over_ && text_.empty() && Clock::now() < limit) {
    if (has_finished()) return true;
    changed_.wait_for(lock, kLook);
  }
  return is_over_ || has_finished();
}

// Before the group goes.
void NcclGroup::detach() {
  if (forks_ != fork_count()) return;
  {
    const std::lock_guard lock(mutex_);
    is_over_ = true;
  }
  changed_.notify_all();
  if (watcher_.joinable()) watcher_.join();
  const std::lock_guard lock(mutex_);
  group_ = nullptr;
}

NcclGroup::~NcclGroup() {
  if (forks_ != fork_count()) {
    static_cast<void>(new std::thread(std::move(watcher_)));  // a forked child has none to join
    static_cast<void>(peers_.release());                      // nor a driver to free it by
    return;
  }
  detach();
  PeerMemory* const peers = peers_.release();
  Handle context = nullptr;
  if (device_.driver().current_context(&context) != 0) return;  // the process ends, the driver has ended
  const CurrentContext current = device_.enter_to_free();
  if (text_.empty()) delete peers;  // ranks that failed may still write into each other's memory
  if (communicator_ != nullptr) nccl_->destroy(communicator_);
  for (const Watched& each : watched_)
    if (each.event != nullptr) device_.driver().destroy_event(each.event);
}

}  // namespace ingot::core::cuda
