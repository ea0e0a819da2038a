// SPDX-License-Identifier: Apache-2.0
// What the executor asks of a backend: make images callable, run one kernel step.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>

#include "engine/engine_file.h"

namespace ingot::core {

class ThreadPool;

// Images of one engine, ready to run. Immutable, shared by contexts.
class LoadedImages {
 public:
  virtual ~LoadedImages() = default;
};

// One kernel call with everything evaluated.
struct KernelCall {
  ImageId image;
  void* const* buffers;
  const int64_t* symbols;
  int64_t work_items;
  int64_t grain;
  int64_t item_cost;
  std::byte* scratch;  // `scratch_stride` bytes a worker
  int64_t scratch_stride;
};

class Executor {
 public:
  virtual ~Executor() = default;
  virtual std::string_view name() const = 0;
  // UserError INGOT-U22x says what this machine lacks ("needs avx512_bf16").
  virtual std::unique_ptr<LoadedImages> load(const EngineData& data, const EngineFile* file) const = 0;
  // Returns 0 or a loops::KernelStatus. Does not throw.
  virtual int64_t run(const LoadedImages& images, const KernelCall& call, ThreadPool& pool) const = 0;
};

}  // namespace ingot::core
