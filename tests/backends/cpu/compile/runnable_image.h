// SPDX-License-Identifier: Apache-2.0
// A kernel binary made callable in this process.
#pragma once

#include <sys/mman.h>

#include <cstring>
#include <stdexcept>
#include <vector>

#include "engine/program.h"

namespace ingot::core::cpu {

class RunnableImage {
 public:
  explicit RunnableImage(const Image& image) : size_(image.code.size()) {
    memory_ = mmap(nullptr, size_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory_ == MAP_FAILED) throw std::runtime_error("no memory for an image");
    std::memcpy(memory_, image.code.data(), size_);
    if (mprotect(memory_, size_, PROT_READ | PROT_EXEC) != 0)
      throw std::runtime_error("an image may not run");
  }
  ~RunnableImage() { munmap(memory_, size_); }
  RunnableImage(const RunnableImage&) = delete;
  RunnableImage& operator=(const RunnableImage&) = delete;

  int64_t operator()(const std::vector<void*>& buffers, const std::vector<int64_t>& symbols, int64_t begin,
                     int64_t end, void* scratch) const {
    using Kernel = int64_t (*)(void* const*, const int64_t*, int64_t, int64_t, void*);
    return reinterpret_cast<Kernel>(memory_)(buffers.data(), symbols.data(), begin, end, scratch);
  }

 private:
  void* memory_;
  size_t size_;
};

}  // namespace ingot::core::cpu
