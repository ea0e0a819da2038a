// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <mutex>

#include "backends/cuda/execute/driver.h"

namespace ingot::core::cuda {

// A library on one GPU. Its functions that take the handle, or change a description, are called by one thread
// at a time.
struct LibraryHandle {
  Handle handle = nullptr;
  std::mutex mutex;
};

// A library call for sizes that are known: everything but its addresses. Any thread may enqueue it.
class PreparedCall {
 public:
  struct Arguments {
    const void *a, *b, *bias, *added;  // of a convolution x and the weight
    void *result, *workspace;
    Handle library;  // of the queue alone, where the library has one to enqueue with
  };

  PreparedCall() = default;
  PreparedCall(const PreparedCall&) = delete;
  PreparedCall& operator=(const PreparedCall&) = delete;
  virtual ~PreparedCall() = default;
  virtual void enqueue(const Arguments& arguments, Handle stream) const = 0;
};

}  // namespace ingot::core::cuda
