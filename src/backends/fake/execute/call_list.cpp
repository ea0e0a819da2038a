// SPDX-License-Identifier: Apache-2.0
#include "backends/fake/execute/call_list.h"

#include "backends/fake/execute/collective.h"

namespace ingot::core::fake {
namespace {

// A call is {launch, kernel, count of buffers, count of values, buffers..., values...}; the values of a copy
// are its size and, if it is beside the calls, `latest`; those of a collective are more.
template <typename Pointer>
uint64_t word(Pointer* pointer) {
  return reinterpret_cast<uint64_t>(pointer);
}

}  // namespace

void CallList::add(const KernelCall& call, const LoadedKernel* kernel) {
  const size_t values = call.launch != nullptr ? call.launch->symbols.size() : 1;
  words_.insert(words_.end(), {word(call.launch), word(kernel), call.buffers.size(), values});
  for (const void* buffer : call.buffers) words_.push_back(word(buffer));
  const int64_t* const from = call.launch != nullptr ? call.symbols : call.sizes;
  words_.insert(words_.end(), from, from + values);
}

void CallList::add(const Prefetch& fetch, uint32_t latest) {
  words_.insert(words_.end(), {0, 0, 2, 2, word(fetch.from), word(fetch.to), fetch.bytes, latest});
}

void CallList::add(const DeviceCollective& collective, std::span<void* const> buffers) {
  const std::vector<int64_t> values = words_of(collective);
  words_.insert(words_.end(), {0, 0, 2, values.size(), word(buffers[0]), word(buffers[1])});
  words_.insert(words_.end(), values.begin(), values.end());
  has_collectives_ = true;
}

std::vector<ListedCall> CallList::calls() const {
  std::vector<ListedCall> calls;
  for (auto next = words_.begin(); next != words_.end();) {
    ListedCall& call = calls.emplace_back();
    call.launch = reinterpret_cast<const Launch*>(*next++);
    call.kernel = reinterpret_cast<const LoadedKernel*>(*next++);
    const auto buffers = static_cast<ptrdiff_t>(*next++), values = static_cast<ptrdiff_t>(*next++);
    for (ptrdiff_t i = 0; i < buffers; ++i) call.buffers.push_back(reinterpret_cast<const void*>(*next++));
    call.symbols.assign(next, next + values);
    next += values;
    if (call.launch != nullptr) continue;
    if (values > 2) {
      call.collective = collective_of(call.symbols);
      continue;
    }
    call.bytes = static_cast<size_t>(call.symbols[0]);
    if (values > 1) call.latest = static_cast<uint32_t>(call.symbols[1]);
  }
  return calls;
}

}  // namespace ingot::core::fake
