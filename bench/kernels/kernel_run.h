// SPDX-License-Identifier: Apache-2.0
// A planned kernel with buffers of its own, ready to be run by several threads.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "backends/cpu/compile/templates/kernel_template.h"
#include "tests/backends/cpu/compile/runnable_image.h"

namespace ingot::bench {

using AlignedMemory = std::unique_ptr<std::byte, void (*)(void*)>;
AlignedMemory allocate(size_t bytes);  // on huge pages where the system has them; filled with small numbers

class KernelRun {
 public:
  KernelRun(const core::cpu::TemplateKernel& plan, const std::vector<core::TensorType>& buffers,
            const core::SymbolValues& symbols, int threads);
  void run_part(int thread) const;  // of as many parts as there are threads

 private:
  core::cpu::RunnableImage image_;
  std::vector<AlignedMemory> memory_, scratch_;
  std::vector<void*> pointers_;
  std::vector<int64_t> symbols_;
  int64_t items_;
};

// Threads that stay on one processor each and start together.
class Team {
 public:
  explicit Team(int threads);
  ~Team();
  double seconds(const std::function<void(int thread)>& work);  // of one run by all threads

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace ingot::bench
