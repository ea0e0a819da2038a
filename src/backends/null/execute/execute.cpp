// SPDX-License-Identifier: Apache-2.0
#include "backends/null/execute/execute.h"

namespace ingot::core::null {
namespace {

class NullQueue final : public Queue {
 public:
  std::optional<CallFailure> run(const CallSpan& span) override {
    for (const KernelCall& call : span.calls) {
      if (call.launch == nullptr) copy_on_host(call);
    }
    return std::nullopt;
  }
};

class NullExecutor final : public Executor {
 public:
  std::string_view name() const override { return "null"; }
  std::string missing(const Image&) const override { return {}; }
  std::unique_ptr<LoadedImages> load(const EngineData&, const EngineFile*) const override {
    return std::make_unique<LoadedImages>();
  }
  bool is_valid(const Launch&, size_t) const override { return true; }
  std::unique_ptr<Queue> open_queue(const MemoryAllocator*) const override {
    return std::make_unique<NullQueue>();
  }
};

constinit const NullExecutor kExecutor;

}  // namespace

const Executor& executor() { return kExecutor; }

}  // namespace ingot::core::null
