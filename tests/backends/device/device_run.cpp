// SPDX-License-Identifier: Apache-2.0
#include "tests/backends/device/device_run.h"

#include "backends/fake/compile/backend.h"
#include "compiler/compile.h"

namespace ingot::core::test {
namespace {

struct Outputs {
  DeviceMemory* memory;  // null: of the host
  std::vector<Tensor> tensors;

  static void* allocate(void* context, size_t index, DType dtype, std::span<const int64_t> shape,
                        size_t bytes) {
    auto& own = *static_cast<Outputs*>(context);
    if (own.tensors.size() <= index) own.tensors.resize(index + 1);
    Tensor& tensor = own.tensors[index];
    tensor = own.memory == nullptr ? make_tensor(dtype, {shape.begin(), shape.end()})
                                   : Tensor{own.memory->allocate(bytes), dtype, {shape.begin(), shape.end()}};
    return tensor.data.get();
  }
};

}  // namespace

Device::Device(uint64_t seed, bool has_collectives)
    : backend(&fake::backend()), executor({.seed = seed, .has_collectives = has_collectives}) {}

std::shared_ptr<EngineData> Device::compile(const aten::Imported& model, int level, BuildReport* report) {
  CompileOptions options;
  options.target = {.backend = std::string(backend->name()), .device = backend->device(""), .level = level};
  options.passes.level = level;
  options.rank = "any";
  options.cache.reuse = options.cache.keep = false;
  std::vector<const Backend*> backends = {backend};
  if (host_backend != nullptr) {
    backends.push_back(host_backend);
    options.target.host_device = host_backend->device("");
  }
  options.target.backend_of = backend_of;
  const auto import = [&] {
    return aten::Imported{model.graph.clone(), model.checks,      model.weights,
                          model.states,        model.input_slots, model.output_slots};
  };
  return compile_model({}, import, options, backends, {}, report);
}

std::shared_ptr<Engine> Device::build(const aten::Imported& model, int level) {
  return Engine::create(compile(model, level), host);
}

std::shared_ptr<Engine> Device::build(const Graph& graph, int level) {
  aten::Imported model{.graph = graph.clone()};
  model.input_slots.assign(graph.inputs().size(), TensorSlot{});
  model.output_slots.assign(graph.outputs.size(), TensorSlot{});
  return build(model, level);
}

Tensor Device::copy_to_device(const Tensor& tensor) {
  Tensor copy{executor.memory()->allocate(tensor.bytes()), tensor.dtype, tensor.shape};
  executor.memory()->copy(copy.data.get(), tensor.data.get(), tensor.bytes());
  return copy;
}

Tensor Device::copy_to_host(const Tensor& tensor) {
  Tensor copy = make_tensor(tensor.dtype, tensor.shape);
  executor.memory()->copy(copy.data.get(), tensor.data.get(), tensor.bytes());
  return copy;
}

Argument argument_of(const Tensor& tensor, Where where) {
  return {tensor.data.get(),   tensor.dtype, static_cast<int32_t>(tensor.shape.size()),
          tensor.shape.data(), nullptr,      where == Where::kDevice};
}

std::vector<Tensor> call(Device& device, Context& context, const std::vector<Tensor>& inputs, Where there,
                         Where outputs, const RunOptions& options) {
  std::vector<Argument> arguments;
  for (const Tensor& input : inputs) arguments.push_back(argument_of(input, there));
  const bool on_device = outputs == Where::kDevice;
  Outputs made{on_device ? device.executor.memory() : nullptr, {}};
  context.run(arguments, {&Outputs::allocate, &made, on_device}, options);
  return std::move(made.tensors);
}

std::vector<Tensor> call_by_copies(Device& device, Context& context, const std::vector<Tensor>& inputs) {
  std::vector<Tensor> there, back;
  for (const Tensor& input : inputs) there.push_back(device.copy_to_device(input));
  const std::vector<Tensor> outputs = call(device, context, there, Where::kDevice, Where::kDevice);
  context.synchronize();
  for (const Tensor& output : outputs) back.push_back(device.copy_to_host(output));
  return back;
}

}  // namespace ingot::core::test
