// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/execute/cudnn_descriptor.h"

#include <algorithm>
#include <utility>

#include <fmt/core.h>

namespace ingot::core::cuda {

CudnnDescriptor::CudnnDescriptor(const Cudnn& library, DescriptorKind kind, std::string name)
    : library_(library), name_(std::move(name)) {
  require(library_.create_descriptor(kind, &handle_), "creation");
}

CudnnDescriptor::CudnnDescriptor(CudnnDescriptor&& other) noexcept
    : library_(other.library_), name_(other.name_), handle_(std::exchange(other.handle_, nullptr)) {}

CudnnDescriptor::~CudnnDescriptor() {
  if (handle_ != nullptr) library_.destroy_descriptor(handle_);
}

void CudnnDescriptor::require(int result, const char* what) const {
  if (result != 0) [[unlikely]]
    check(library_, result, fmt::format("{} of {}", what, name_).c_str());
}

void CudnnDescriptor::require(int result, const char* what, CudnnAttribute attribute) const {
  if (result != 0) [[unlikely]]
    require(result, fmt::format("{} {}", what, static_cast<int>(attribute)).c_str());
}

CudnnDescriptor& CudnnDescriptor::set(CudnnAttribute attribute, AttributeType type, int64_t count,
                                      const void* values) {
  require(library_.set(handle_, attribute, type, count, values), "attribute", attribute);
  return *this;
}

CudnnDescriptor& CudnnDescriptor::finalize() {
  require(library_.finalize(handle_), "finalization");
  return *this;
}

int64_t CudnnDescriptor::number(CudnnAttribute attribute) const {
  int64_t value = 0, count = 0;
  require(library_.get(handle_, attribute, AttributeType::kInt64, 1, &count, &value), "value", attribute);
  return value;
}

std::vector<int> CudnnDescriptor::numbers(CudnnAttribute attribute, AttributeType type, size_t most) const {
  std::vector<int> values(most);
  int64_t count = 0;
  require(library_.get(handle_, attribute, type, static_cast<int64_t>(most), &count, values.data()), "values",
          attribute);
  values.resize(static_cast<size_t>(std::clamp<int64_t>(count, 0, static_cast<int64_t>(most))));
  return values;
}

int64_t CudnnDescriptor::count(CudnnAttribute attribute) const {
  int64_t count = 0;
  require(library_.get(handle_, attribute, AttributeType::kDescriptor, 0, &count, nullptr),
          "number of values", attribute);
  return count;
}

size_t CudnnDescriptor::get(CudnnAttribute attribute, std::span<CudnnDescriptor> descriptors) const {
  std::vector<Handle> handles;
  for (const CudnnDescriptor& each : descriptors) handles.push_back(each.handle_);
  int64_t count = 0;
  require(library_.get(handle_, attribute, AttributeType::kDescriptor, static_cast<int64_t>(handles.size()),
                       &count, handles.data()),
          "descriptors", attribute);
  return static_cast<size_t>(std::clamp<int64_t>(count, 0, static_cast<int64_t>(handles.size())));
}

}  // namespace ingot::core::cuda
