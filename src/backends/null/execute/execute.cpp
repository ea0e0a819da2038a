// SPDX-License-Identifier: Apache-2.0
#include "backends/null/execute/execute.h"

namespace ingot::core::null {
namespace {

class NullExecutor final : public Executor {
 public:
  std::string_view name() const override { return "null"; }
  std::unique_ptr<LoadedImages> load(const EngineData&, const EngineFile*) const override {
    return std::make_unique<LoadedImages>();
  }
  int64_t run(const LoadedImages&, const KernelCall&, ThreadPool&) const override { return 0; }
};

constinit const NullExecutor kExecutor;

}  // namespace

const Executor& executor() { return kExecutor; }

}  // namespace ingot::core::null
