// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/execute/call_list.h"

#include <algorithm>

#include "backends/cuda/execute/capture_mode.h"
#include "backends/cuda/execute/device.h"
#include "backends/cuda/kernel_abi.h"

namespace ingot::core::cuda {
namespace {

// A launch is {function, grid and block, shared bytes and the counts of arguments and maps, arguments...,
// maps...}, a map is {address, constants, sizes...}, a copy {0, from, to, bytes}, a fetch {1, from, to,
// bytes}, a wait {2, fetch}, a mark {3, event} and a collective {4, its words, group, from, to, kind,
// reduction, dtype and source, elements, bytes, bytes by rank...}, and a call of a library {5, the call, its
// number, a, b, bias, added, result, workspace, the queue's handle}.
constexpr size_t kHeader = 3, kCopy = 4, kWait = 2, kMap = 2 + kMapSizes;
constexpr size_t kCollective = 8, kLibrary = 10;
enum Word : uint64_t { kCopyWord, kFetchWord, kWaitWord, kMarkWord, kCollectiveWord, kLibraryWord };
constexpr uint64_t kOneMap = 1 << 16;  // in the third word

bool is_launch(uint64_t word) { return word > kLibraryWord; }

size_t arguments_of(const uint64_t* launch) { return static_cast<uint32_t>(launch[2]) % kOneMap; }
size_t maps_of(const uint64_t* launch) { return static_cast<uint32_t>(launch[2]) / kOneMap; }
uint32_t grid_of(const uint64_t* launch) { return static_cast<uint32_t>(launch[1] >> 32); }
uint32_t block_of(const uint64_t* launch) { return static_cast<uint32_t>(launch[1]); }
uint32_t shared_bytes_of(const uint64_t* launch) { return static_cast<uint32_t>(launch[2] >> 32); }

uint64_t packed(const DeviceCollective& own) {
  constexpr int kKindBits = 8, kSourceBits = 32;
  return static_cast<uint64_t>(own.kind) | static_cast<uint64_t>(own.reduction) << kKindBits |
         static_cast<uint64_t>(own.dtype) << 2 * kKindBits | static_cast<uint64_t>(own.source) << kSourceBits;
}

// What was captured last on a stream; null where the driver does not say.
Handle last_node(const Driver& driver, Handle stream) {
  int state = 0;
  uint64_t id = 0;
  Handle graph = nullptr;
  const Handle* last = nullptr;
  size_t count = 0;
  const int result = driver.capture_state(stream, &state, &id, &graph, &last, &count);
  return result == 0 && count == 1 ? *last : nullptr;
}

}  // namespace

void CallList::add_copy(const void* from, void* to, size_t bytes) {
  words_.insert(words_.end(), {kCopyWord, address(from), address(to), bytes});
}

void CallList::add_fetch(const void* from, void* to, size_t bytes) {
  words_.insert(words_.end(), {kFetchWord, address(from), address(to), bytes});
  ++fetches_;
}

void CallList::add_collective(NcclGroup& group, const DeviceCollective& own, const void* from, void* to) {
  add_use(group, own, Way::kNccl);
  words_.insert(words_.end(), {kCollectiveWord, kCollective + 2 * own.sent.size(), address(&group),
                               address(from), address(to), packed(own), own.elements, own.bytes});
  words_.insert(words_.end(), own.sent.begin(), own.sent.end());
  words_.insert(words_.end(), own.received.begin(), own.received.end());
}

void CallList::add_peer_kernel(NcclGroup& group, const DeviceCollective& own, Handle function,
                               const void* from, void* to) {
  add_use(group, own, Way::kPeers);
  add_launch(function, peer_blocks(own.bytes), kPeerThreads, 0);
  for (const uint64_t word : {address(from), address(to), Address{own.elements}}) add_argument(word);
  for (const uint64_t word : group.peers().arguments()) add_argument(word);
}

void CallList::add_library_call(const PreparedCall& call, uint64_t number,
                                const PreparedCall::Arguments& own) {
  words_.insert(words_.end(), {kLibraryWord, address(&call), number});
  for (const void* each : {own.a, own.b, own.bias, own.added}) words_.push_back(address(each));
  words_.insert(words_.end(), {address(own.result), address(own.workspace), address(own.library)});
}

// No kernel behind it starts early: nothing says when the library's kernels let it.
void CallList::enqueue_library_call(const Driver& driver, const uint64_t* words, Handle stream) {
  const RelaxedCapture relaxed(driver);  // the library's code may be loaded at its first use
  const auto at = [&](size_t i) { return reinterpret_cast<void*>(words[i]); };
  reinterpret_cast<const PreparedCall*>(words[1])->enqueue({.a = at(3),
                                                            .b = at(4),
                                                            .bias = at(5),
                                                            .added = at(6),
                                                            .result = at(7),
                                                            .workspace = at(8),
                                                            .library = at(9)},
                                                           stream);
}

void CallList::add_use(NcclGroup& group, const DeviceCollective& own, Way way) {
  auto use = std::ranges::find(groups_, &group, &GroupUse::group);
  if (use == groups_.end()) use = groups_.insert(groups_.end(), {&group, 0, 0});
  for (const uint64_t word :
       {packed(own), uint64_t{own.elements}, uint64_t{own.bytes}, static_cast<uint64_t>(way)})
    use->history = extended_history(use->history, word);
  use->elements += own.elements;
}

void CallList::enqueue_collective(const uint64_t* words, Handle stream) const {
  const size_t ranks = (words[1] - kCollective) / 2;
  const uint64_t* const rows = words + kCollective;
  const DeviceCollective own{.kind = static_cast<DeviceCollective::Kind>(words[5] & 0xff),
                             .reduction = static_cast<DeviceCollective::Reduction>(words[5] >> 8 & 0xff),
                             .dtype = static_cast<DType>(words[5] >> 16 & 0xff),
                             .source = static_cast<int>(words[5] >> 32),
                             .elements = words[6],
                             .bytes = words[7],
                             .sent = {rows, rows + ranks},
                             .received = {rows + ranks, rows + 2 * ranks}};
  reinterpret_cast<NcclGroup*>(words[2])->enqueue(own, reinterpret_cast<const void*>(words[3]),
                                                  reinterpret_cast<void*>(words[4]), stream);
}

void CallList::add_mark(uint32_t number) { words_.insert(words_.end(), {kMarkWord, number}); }

void CallList::add_wait(uint32_t fetch) { words_.insert(words_.end(), {kWaitWord, fetch}); }

void CallList::add_launch(Handle function, uint32_t grid, uint32_t block, uint32_t shared_bytes) {
  words_.insert(words_.end(),
                {address(function), uint64_t{grid} << 32 | block, uint64_t{shared_bytes} << 32});
  counter_ = words_.size() - 1;
}

void CallList::add_argument(uint64_t value) {
  ++words_[counter_];
  words_.push_back(value);
}

void CallList::add_map(const void* buffer, const int64_t* constants, const int64_t* sizes) {
  words_[counter_] += kOneMap;
  words_.insert(words_.end(), {address(buffer), address(constants)});
  words_.insert(words_.end(), sizes, sizes + kMapSizes);
}

Checksum CallList::checksum() const { return core::checksum(std::as_bytes(std::span(words_))); }

size_t CallList::words_of(size_t i) const {
  const uint64_t* const call = &words_[i];
  if (is_launch(*call)) return kHeader + arguments_of(call) + maps_of(call) * kMap;
  if (*call == kCollectiveWord) return call[1];
  if (*call == kLibraryWord) return kLibrary;
  return *call == kCopyWord || *call == kFetchWord ? kCopy : kWait;
}

bool CallList::is_like(const CallList& other) const {
  if (words_.size() != other.words_.size()) return false;
  for (size_t i = 0; i < words_.size(); i += words_of(i)) {
    const size_t fixed = is_launch(words_[i]) ? kHeader : words_of(i);
    if (!std::equal(&words_[i], &words_[i] + fixed, &other.words_[i])) return false;
  }
  return true;
}

void CallList::update(const Driver& driver, const CallList& old, Handle executable,
                      std::span<const Handle> nodes) {
  size_t launch = 0;
  for (size_t i = 0; i < words_.size(); i += words_of(i)) {
    if (!is_launch(words_[i])) continue;
    const Handle node = nodes[launch++];
    uint64_t* const own = &words_[i];
    if (std::equal(own, own + words_of(i), &old.words_[i])) continue;
    collect_arguments(driver, own);
    const KernelNode changed{.function = reinterpret_cast<Handle>(*own),
                             .grid = {grid_of(own), 1, 1},
                             .block = {block_of(own), 1, 1},
                             .shared_bytes = shared_bytes_of(own),
                             .arguments = arguments_.data(),
                             .extra = nullptr,
                             .kernel = nullptr,
                             .context = nullptr};
    check(driver, driver.set_kernel(executable, node, &changed), "cuGraphExecKernelNodeSetParams");
  }
}

void CallList::collect_arguments(const Driver& driver, uint64_t* launch) {
  const size_t count = arguments_of(launch);
  arguments_.clear();
  for (size_t k = 0; k < count; ++k) arguments_.push_back(launch + kHeader + k);
  encode_maps(driver, launch + kHeader + count, maps_of(launch));
}

void CallList::enqueue(const Driver& driver, Handle stream, CopyStream& copies, bool overlap,
                       const Captured& captured) {
  constexpr LaunchAttribute kStartsEarly{.id = 6, .padding = {}, .value = {1}};  // programmatic serialization
  bool follows_kernel = false;
  uint32_t fetches = 0;
  for (size_t i = 0; i < words_.size(); i += words_of(i)) {
    if (words_[i] == kFetchWord) {
      copies.fetch(driver, stream, fetches++, words_[i + 1], words_[i + 2], words_[i + 3]);
      continue;
    }
    if (words_[i] == kWaitWord) {
      copies.wait(driver, stream, static_cast<uint32_t>(words_[i + 1]));
      follows_kernel = false;  // a kernel that starts early reads its weights at once
      continue;
    }
    if (words_[i] == kCollectiveWord) {
      enqueue_collective(&words_[i], stream);
      follows_kernel = false;
      continue;
    }
    if (words_[i] == kLibraryWord) {
      enqueue_library_call(driver, &words_[i], stream);
      follows_kernel = false;
      continue;
    }
    if (words_[i] == kMarkWord) {
      constexpr unsigned kAlsoInReplays = 1;  // CU_EVENT_RECORD_EXTERNAL
      check(driver, driver.record_with(captured.marks[words_[i + 1]], stream, kAlsoInReplays),
            "cuEventRecordWithFlags");
      follows_kernel = false;
      continue;
    }
    if (words_[i] == kCopyWord) {
      check(driver, driver.copy_on(words_[i + 2], words_[i + 1], words_[i + 3], stream), "cuMemcpyAsync");
      follows_kernel = false;
      continue;
    }
    uint64_t* const own = &words_[i];
    collect_arguments(driver, own);
    const LaunchConfig config{.grid = {grid_of(own), 1, 1},
                              .block = {block_of(own), 1, 1},
                              .shared_bytes = shared_bytes_of(own),
                              .stream = stream,
                              .attributes = &kStartsEarly,
                              .attribute_count = overlap && follows_kernel ? 1u : 0u};
    check(driver, driver.launch(&config, reinterpret_cast<Handle>(*own), arguments_.data(), nullptr),
          "cuLaunchKernelEx");
    if (captured.nodes != nullptr) captured.nodes->push_back(last_node(driver, stream));
    follows_kernel = true;
  }
}

void CallList::encode_maps(const Driver& driver, const uint64_t* words, size_t count) {
  maps_.clear();
  for (size_t k = 0; k < count; ++k) {
    const uint64_t* const map = words + k * kMap;
    const auto* const constants = reinterpret_cast<const int64_t*>(map[1]);
    const auto* const sizes = reinterpret_cast<const int64_t*>(map + 2);
    maps_.push_back(encode_map(driver, map[0], {constants, kMapConstants}, {sizes, kMapSizes}));
  }
  for (EncodedMap& map : maps_) arguments_.push_back(&map);
}

}  // namespace ingot::core::cuda
