// SPDX-License-Identifier: Apache-2.0
// Engines by the tensors that hold their files: opened at the first run, closed some time after their tensor
// is gone.
#pragma once

#include <ATen/core/Tensor.h>

#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "ingot/context.h"

namespace ingot::torch_operators {

// An engine with a context for each run that overlaps with others; with one for all if it has states.
// Thread-safe.
class OpenedEngine {
 public:
  explicit OpenedEngine(Engine engine);

  std::vector<at::Tensor> run(const std::vector<at::Tensor>& inputs);

 private:
  std::shared_ptr<Context> take_context();  // is given back when it is released

  Engine engine_;
  size_t outputs_;
  bool has_states_;
  std::mutex state_, mutex_;  // of the one context; of idle_
  std::vector<std::unique_ptr<Context>> idle_;
};

// Thread-safe.
class OpenedEngines {
 public:
  // `content`: the bytes of an engine file, dense u8 in host memory, which must not change. Errors as
  // Engine::load.
  std::shared_ptr<OpenedEngine> of(const at::Tensor& content);

 private:
  struct Entry {
    c10::weak_intrusive_ptr<at::TensorImpl> tensor;  // not the one that the engine keeps
    std::shared_ptr<OpenedEngine> engine;
  };
  std::mutex mutex_;
  std::map<const void*, Entry> entries_;  // by the address of the content
};

}  // namespace ingot::torch_operators
