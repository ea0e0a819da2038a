// SPDX-License-Identifier: Apache-2.0
// Memory that several processes of the fake driver share, and the kernels with which ranks reduce over it, as
// backends/cuda/kernel_abi.h has them.
#pragma once

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "backends/cuda/kernel_abi.h"
#include "fake_numbers.h"

namespace {

namespace abi = ingot::core::cuda;

bool has_peers() { return std::getenv("FAKE_PEERS") != nullptr; }

// ---- memory ----

struct SharedMemory {  // CUipcMemHandle
  int32_t process, file;
  uint64_t bytes;
  char unused[48];
};
struct Mapping {
  int file;
  size_t bytes;
};
auto& shared_mutex = *new std::mutex;
auto& mappings = *new std::map<void*, Mapping>;

void* map_file(int file, size_t bytes) {
  void* const memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  const std::scoped_lock lock(shared_mutex);
  mappings[memory] = {file, bytes};
  return memory;
}
// Zero. What is large enough for a mailbox can be shared.
void* allocate_shared(size_t bytes) {
  if (!has_peers() || bytes < abi::kMailboxBytes) return std::calloc(bytes, 1);
  const int file = memfd_create("fake GPU", 0);
  if (file < 0 || ftruncate(file, static_cast<off_t>(bytes)) != 0) return nullptr;
  return map_file(file, bytes);
}
void free_shared(void* memory) {
  const std::scoped_lock lock(shared_mutex);
  const auto found = mappings.find(memory);
  if (found == mappings.end()) return std::free(memory);
  munmap(memory, found->second.bytes);
  close(found->second.file);
  mappings.erase(found);
}
bool share(void* memory, SharedMemory& handle) {
  const std::scoped_lock lock(shared_mutex);
  const auto found = mappings.find(memory);
  if (found == mappings.end()) return false;
  handle = {getpid(), found->second.file, found->second.bytes, {}};
  return true;
}
void* open_shared(const SharedMemory& handle) {
  const std::string path = "/proc/" + std::to_string(handle.process) + "/fd/" + std::to_string(handle.file);
  const int file = open(path.c_str(), O_RDWR);
  return file < 0 ? nullptr : map_file(file, handle.bytes);
}

// ---- kernels ----

// Operand, result, elements, and PeerArgument.
using PeerArguments = std::array<uint64_t, 3 + abi::kPeerArguments>;
// A kernel that does the next launch, too, gets that one's buffers: with FAKE_NEXT there are three, and the
// last becomes the sum of the others. Other launches compute nothing.
struct PeerCall {
  PeerArguments words;
  std::array<uint64_t, 3> next;
};
struct PeerKernel {
  void (*run)(const PeerCall&) = nullptr;
  bool does_next = false;
};
std::atomic<int> peer_kernels = 0, peer_kernels_with_next = 0;

PeerCall peer_call(const PeerKernel& kernel, void** given) {
  PeerCall call{};
  for (size_t i = 0; i < call.words.size(); ++i) std::memcpy(&call.words[i], given[i], sizeof(uint64_t));
  if (!kernel.does_next || std::getenv("FAKE_NEXT") == nullptr) return call;
  for (size_t i = 0; i < call.next.size(); ++i)
    std::memcpy(&call.next[i], given[call.words.size() + i], sizeof(uint64_t));
  return call;
}

constexpr uint64_t kArrived = uint64_t{1} << 32;
using Word = std::atomic_ref<uint64_t>;

template <typename Stored>
struct PeerReduction {
  static constexpr int kEach = static_cast<int>(abi::kPeerLine / sizeof(Stored));
  using Line = std::array<Stored, kEach>;

  explicit PeerReduction(const PeerArguments& words)
      : x(reinterpret_cast<const Stored*>(words[0])),
        y(reinterpret_cast<Stored*>(words[1])),
        elements(static_cast<int64_t>(words[2])),
        own(words.data() + 3),
        rank(static_cast<int>(own[abi::kPeerRank])),
        ranks(static_cast<int>(own[abi::kPeerRanks])),
        count(*reinterpret_cast<uint32_t*>(own[abi::kPeerCounts])) {}

  uint64_t* place(int mailbox, int part, int64_t line) const {
    const int64_t half = count % 2 * (abi::kMailboxBytes / 2), lines = abi::peer_lines(ranks);
    return reinterpret_cast<uint64_t*>(own[mailbox] +
                                       static_cast<uint64_t>(half + (part * lines + line) * 16));
  }
  Line line_at(int64_t line) const {
    Line values{};
    for (int64_t k = 0; k < kEach && line * kEach + k < elements; ++k) values[k] = x[line * kEach + k];
    return values;
  }
  void send(int64_t line) const {
    uint64_t word;
    std::memcpy(&word, line_at(line).data(), sizeof(word));
    for (int other = 0; other < ranks; ++other) {
      if (other == rank) continue;
      uint64_t* const to = place(other, rank, line);
      Word(to[0]).store((word & 0xffffffff) | kArrived);
      Word(to[1]).store(word >> 32 | kArrived);
    }
  }
  Line receive(int from, int64_t line) const {
    uint64_t* const at = place(rank, from, line);
    const auto* is_over = reinterpret_cast<const volatile int32_t*>(own[abi::kPeerIsOver]);
    while ((Word(at[0]).load() & Word(at[1]).load() & kArrived) == 0 && *is_over == 0)
      std::this_thread::yield();
    const uint64_t word = (Word(at[0]).load() & 0xffffffff) | Word(at[1]).load() << 32;
    Word(at[0]).store(0);
    Word(at[1]).store(0);
    Line values;
    return std::memcpy(values.data(), &word, sizeof(word)), values;
  }
  void run(bool is_average) const {
    const int64_t lines = (elements + kEach - 1) / kEach;
    for (int64_t line = 0; line < lines; ++line) send(line);
    for (int64_t line = 0; line < lines; ++line) {
      std::array<float, kEach> sums{};
      for (int other = 0; other < ranks; ++other) {
        const Line part = other == rank ? line_at(line) : receive(other, line);
        for (int k = 0; k < kEach; ++k) sums[k] = other == 0 ? wide(part[k]) : sums[k] + wide(part[k]);
      }
      for (int64_t k = 0; k < kEach && line * kEach + k < elements; ++k)
        y[line * kEach + k] = narrow<Stored>(is_average ? sums[k] / static_cast<float>(ranks) : sums[k]);
    }
    ++*reinterpret_cast<uint32_t*>(own[abi::kPeerCounts]);
    ++peer_kernels;
  }
  void run_next(const PeerCall& call) const {
    const auto at = [&](size_t i) { return reinterpret_cast<Stored*>(call.next[i]); };
    for (int64_t i = 0; i < elements && call.next[2] != 0; ++i)
      at(2)[i] = narrow<Stored>(wide(at(0)[i]) + wide(at(1)[i]));
  }

  const Stored* x;
  Stored* y;
  int64_t elements;
  const uint64_t* own;
  int rank, ranks;
  uint32_t count;
};

template <typename Stored, bool is_average>
void reduce_by_peers(const PeerCall& call) {
  const PeerReduction<Stored> reduction(call.words);
  reduction.run(is_average);
  reduction.run_next(call);
}

// Without `run`: not one of them.
PeerKernel find_peer_kernel(const std::string& name) {
  static const std::map<std::string, void (*)(const PeerCall&)> kernels = {
      {"sum_f32", reduce_by_peers<float, false>},  {"avg_f32", reduce_by_peers<float, true>},
      {"sum_f16", reduce_by_peers<Half, false>},   {"avg_f16", reduce_by_peers<Half, true>},
      {"sum_bf16", reduce_by_peers<Brain, false>}, {"avg_bf16", reduce_by_peers<Brain, true>}};
  if (!name.starts_with(abi::kPeerEntry)) return {};
  std::string reduction = name.substr(std::strlen(abi::kPeerEntry));
  const bool does_next = reduction.ends_with(abi::kPeerNext);
  if (does_next) reduction.resize(reduction.size() - std::strlen(abi::kPeerNext));
  return {kernels.at(reduction), does_next};
}

}  // namespace
