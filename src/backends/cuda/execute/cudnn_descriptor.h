// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>
#include <vector>

#include "backends/cuda/execute/cudnn.h"

namespace ingot::core::cuda {

// A descriptor of cuDNN: attributes are set, then it is finalized. Errors (INGOT-D405) have `name`.
class CudnnDescriptor {
 public:
  CudnnDescriptor(const Cudnn& library, DescriptorKind kind, std::string name);
  ~CudnnDescriptor();
  CudnnDescriptor(CudnnDescriptor&& other) noexcept;
  CudnnDescriptor(const CudnnDescriptor&) = delete;
  CudnnDescriptor& operator=(const CudnnDescriptor&) = delete;
  CudnnDescriptor& operator=(CudnnDescriptor&&) = delete;

  Handle handle() const { return handle_; }

  CudnnDescriptor& set(CudnnAttribute attribute, AttributeType type, int64_t count, const void* values);
  CudnnDescriptor& set(CudnnAttribute attribute, std::span<const int64_t> values) {
    return set(attribute, AttributeType::kInt64, static_cast<int64_t>(values.size()), values.data());
  }
  CudnnDescriptor& set(CudnnAttribute attribute, const CudnnDescriptor& other) {
    return set(attribute, AttributeType::kDescriptor, 1, &other.handle_);
  }
  // One number, or an element of an enumeration.
  template <typename Value>
  CudnnDescriptor& set(CudnnAttribute attribute, AttributeType type, Value value) {
    return set(attribute, type, 1, &value);
  }
  // The same; versions without the attribute ignore it.
  template <typename Value>
  CudnnDescriptor& set_if_known(CudnnAttribute attribute, AttributeType type, Value value) {
    library_.set(handle_, attribute, type, 1, &value);
    return *this;
  }
  CudnnDescriptor& finalize();
  bool try_finalize() { return library_.finalize(handle_) == 0; }

  int64_t number(CudnnAttribute attribute) const;
  // At most `most` numbers of an enumeration.
  std::vector<int> numbers(CudnnAttribute attribute, AttributeType type, size_t most) const;
  int64_t count(CudnnAttribute attribute) const;  // of descriptors
  // Fills descriptors of the attribute's kind; how many there are.
  size_t get(CudnnAttribute attribute, std::span<CudnnDescriptor> descriptors) const;

 private:
  void require(int result, const char* what) const;
  void require(int result, const char* what, CudnnAttribute attribute) const;

  const Cudnn& library_;
  const std::string name_;
  Handle handle_ = nullptr;
};

}  // namespace ingot::core::cuda
