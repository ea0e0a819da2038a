// SPDX-License-Identifier: Apache-2.0
// Graphs as engines on a device, called with tensors of the host or of the device.
#pragma once

#include <memory>
#include <vector>

#include "backends/backend.h"
#include "backends/cpu/execute/execute.h"
#include "backends/fake/execute/execute.h"
#include "compiler/build_report.h"
#include "importers/aten/imported.h"
#include "runtime/context.h"

namespace ingot::core::test {

// A device that is tested: the two halves of its backend. Each test has a device of its own, so that nothing
// that another one did is left on it.
struct Device {
  explicit Device(uint64_t seed = 1, bool has_collectives = true);

  const Backend* backend;
  const Backend* host_backend = nullptr;  // compiles for the host; null: the device runs all nodes
  std::vector<BackendChoice> backend_of;
  fake::FakeExecutor executor;
  const Executor* const executors[2] = {&executor, &cpu::executor()};
  Host host{{.threads = 1}, executors};

  // UnsupportedError if the backend does not run it.
  std::shared_ptr<EngineData> compile(const aten::Imported& model, int level = 3,
                                      BuildReport* report = nullptr);
  std::shared_ptr<Engine> build(const aten::Imported& model, int level = 3);
  std::shared_ptr<Engine> build(const Graph& graph, int level = 3);  // without weights and states

  Tensor copy_to_device(const Tensor& tensor);
  Tensor copy_to_host(const Tensor& tensor);
};

enum class Where : uint8_t { kHost, kDevice };
Argument argument_of(const Tensor& tensor, Where where);
// Calls the engine with inputs that are there. Outputs on the device may still be computed when it returns.
std::vector<Tensor> call(Device& device, Context& context, const std::vector<Tensor>& inputs, Where there,
                         Where outputs, const RunOptions& options = {});
// The same with tensors of the host, waiting for the outputs.
std::vector<Tensor> call_by_copies(Device& device, Context& context, const std::vector<Tensor>& inputs);

}  // namespace ingot::core::test
