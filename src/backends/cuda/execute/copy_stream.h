// SPDX-License-Identifier: Apache-2.0
// Copies from pinned memory of the host beside the kernels of a queue.
#pragma once

#include <vector>

#include "backends/cuda/execute/driver.h"

namespace ingot::core::cuda {

// A stream of its own and an event per copy, made when there are copies. If the stream that it is
// beside is being captured, its copies become nodes of that graph.
class CopyStream {
 public:
  CopyStream() = default;
  CopyStream(const CopyStream&) = delete;
  CopyStream& operator=(const CopyStream&) = delete;
  // In the device's context, after all work is done.
  void destroy(const Driver& driver);

  // Makes what `count` copies need; not while a stream is being captured.
  void prepare(const Driver& driver, uint32_t count);
  // Copy `index` of a list, once everything enqueued on `stream` so far is done.
  void fetch(const Driver& driver, Handle stream, uint32_t index, Address from, Address to, size_t bytes);
  // What is enqueued on `stream` from now on waits for copy `index` and those before it.
  void wait(const Driver& driver, Handle stream, uint32_t index) const;

 private:
  Handle stream_ = nullptr, begun_ = nullptr;
  std::vector<Handle> done_;  // one event per copy
};

}  // namespace ingot::core::cuda
