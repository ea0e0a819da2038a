// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/execute/library_calls.h"

#include <algorithm>

#include "backends/cuda/execute/convolution_graph.h"

namespace ingot::core::cuda {
namespace {

constexpr int64_t kProductAlignment = 256;  // bytes; cuBLASLt asks for no more

bool is_convolution(const Launch& launch) { return called_library(launch) == &kCudnn; }

int64_t alignment_of(const PreparedCall::Arguments& own, int64_t most) {
  auto addresses = static_cast<uintptr_t>(most);
  for (const void* each : {own.a, own.b, own.bias, own.added, static_cast<const void*>(own.result)})
    addresses |= reinterpret_cast<uintptr_t>(each);
  return static_cast<int64_t>(addresses & (~addresses + 1));
}

bool is_empty(const Launch& launch, std::span<const int64_t> sizes) {
  if (!is_convolution(launch)) return sizes[kLibraryBatch] <= 0 || sizes[kLibraryRows] <= 0;
  const auto is_nothing = [](int64_t size) { return size <= 0; };
  return sizes[kImages] <= 0 || std::ranges::any_of(sizes.subspan(kOutput, kMostWindowDims), is_nothing);
}

}  // namespace

LibraryCalls::~LibraryCalls() {
  if (convolutions_ != nullptr) LibraryPlans::of(device_).return_convolutions(convolutions_);
}

PreparedCall::Arguments LibraryCalls::arguments_of(const KernelCall& call, void* workspace) const {
  const auto& constants = call.launch->constants;
  const auto at = [&](size_t position) -> void* {
    return constants[position] < 0 ? nullptr : call.buffers[static_cast<size_t>(constants[position])];
  };
  const bool names_operands = is_convolution(*call.launch);
  return {.a = names_operands ? at(kConvolutionX) : call.buffers[0],
          .b = names_operands ? at(kConvolutionWeight) : call.buffers[1],
          .bias = at(kLibraryBias),
          .added = at(kLibraryAdded),
          .result = at(kLibraryResult),
          .workspace = workspace,
          .library = names_operands ? convolutions_ : nullptr};
}

const LibraryPlans::Planned* LibraryCalls::prepare(const KernelCall& call) {
  const std::span<const int64_t> sizes(call.sizes, call.launch->sizes.size());
  if (is_empty(*call.launch, sizes)) return nullptr;
  const int64_t most = is_convolution(*call.launch) ? kConvolutionAlignment : kProductAlignment;
  const int64_t alignment = alignment_of(arguments_of(call, nullptr), most);
  Last& last = last_[call.launch];
  if (last.planned != nullptr && last.alignment == alignment && std::ranges::equal(last.sizes, sizes))
    return last.planned;
  LibraryPlans& plans = LibraryPlans::of(device_);
  if (is_convolution(*call.launch) && convolutions_ == nullptr) convolutions_ = plans.take_convolutions();
  const LibraryPlans::Planned planned = plans.plan(*call.launch, sizes, alignment);
  last = {{sizes.begin(), sizes.end()}, alignment, &kept_.try_emplace(planned.number, planned).first->second};
  return last.planned;
}

void LibraryCalls::clear() {
  last_.clear();
  kept_.clear();
}

}  // namespace ingot::core::cuda
