// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/execute/library_plans.h"

#include "backends/cuda/execute/capture_mode.h"
#include "backends/cuda/execute/library_convolution.h"
#include "backends/cuda/execute/library_errors.h"
#include "backends/cuda/execute/library_product.h"

namespace ingot::core::cuda {
namespace {

// The library's ranking differs from version to version.
int64_t choice_of(const Launch& launch, int64_t version) {
  return launch.constants[kLibraryVersion] == version ? launch.constants[kLibraryChoice] : 0;
}

LibraryProduct::Shape product_shape(const Launch& launch, std::span<const int64_t> sizes, int64_t alignment,
                                    int64_t version) {
  const auto& constants = launch.constants;
  return {.dtype = constants[kLibraryDtype],
          .form = constants[kLibraryForm],
          .batch = sizes[kLibraryBatch],
          .rows = sizes[kLibraryRows],
          .columns = sizes[kLibraryColumns],
          .depth = sizes[kLibraryDepth],
          .choice = choice_of(launch, version),
          .workspace_bytes = sizes[kScratchBytes],
          .alignment = alignment,
          .has_bias = constants[kLibraryBias] >= 0,
          .adds = constants[kLibraryAdded] >= 0};
}

template <typename Calls>
Handle new_handle(const Library& record, const Calls* library, const char* reason) {
  if (library == nullptr) throw_no_library(record, reason);
  Handle handle = nullptr;
  check(*library, library->create(&handle), "creation of a handle");
  return handle;
}

}  // namespace

LibraryPlans& LibraryPlans::of(const Device& device) {
  static std::mutex mutex;
  static auto& plans = *new std::map<int, std::unique_ptr<LibraryPlans>>;
  const std::scoped_lock lock(mutex);
  std::unique_ptr<LibraryPlans>& own = plans[device.index()];
  if (own == nullptr) own.reset(new LibraryPlans(device));
  return *own;
}

LibraryPlans::Planned LibraryPlans::plan(const Launch& launch, std::span<const int64_t> sizes,
                                         int64_t alignment) {
  std::vector<int64_t> key = launch.constants;
  key.insert(key.end(), sizes.begin(), sizes.end());
  key.push_back(alignment);
  const std::scoped_lock lock(mutex_);
  if (const auto found = planned_.find(key); found != planned_.end()) return found->second;
  forget_unused();
  const RelaxedCapture relaxed(device_.driver());
  Planned planned{next_++, make(launch, sizes, alignment)};
  return planned_.emplace(std::move(key), std::move(planned)).first->second;
}

Handle LibraryPlans::take_convolutions() {
  const std::scoped_lock lock(mutex_);
  if (unused_.empty()) {
    const char* reason = nullptr;
    const Cudnn* library = find_cudnn(&reason);
    const RelaxedCapture relaxed(device_.driver());
    return new_handle(kCudnn, library, reason);
  }
  const Handle handle = unused_.back();
  unused_.pop_back();
  return handle;
}

void LibraryPlans::return_convolutions(Handle handle) {
  const std::scoped_lock lock(mutex_);
  unused_.push_back(handle);
}

std::shared_ptr<const PreparedCall> LibraryPlans::make(const Launch& launch, std::span<const int64_t> sizes,
                                                       int64_t alignment) {
  const char* reason = nullptr;
  if (called_library(launch) == &kCudnn) {
    const Cudnn* library = find_cudnn(&reason);
    LibraryHandle& handle = open(kCudnn, library, reason, convolutions_);
    const std::scoped_lock lock(handle.mutex);
    return std::make_shared<LibraryConvolution>(*library, handle,
                                                ConvolutionShape(launch, sizes.data(), alignment),
                                                choice_of(launch, library->version), sizes[kScratchBytes]);
  }
  const CublasLt* library = find_cublaslt(&reason);
  LibraryHandle& handle = open(kCublasLt, library, reason, products_);
  const std::scoped_lock lock(handle.mutex);
  return std::make_shared<LibraryProduct>(*library, handle,
                                          product_shape(launch, sizes, alignment, library->version));
}

template <typename Calls>
LibraryHandle& LibraryPlans::open(const Library& record, const Calls* library, const char* reason,
                                  LibraryHandle& own) {
  if (own.handle == nullptr) own.handle = new_handle(record, library, reason);
  return own;
}

// Those that no queue has any more, once there are many.
void LibraryPlans::forget_unused() {
  constexpr size_t kMostPlanned = 4096;
  if (planned_.size() < kMostPlanned) return;
  std::erase_if(planned_, [](const auto& each) { return each.second.call.use_count() == 1; });
}

}  // namespace ingot::core::cuda
