// SPDX-License-Identifier: Apache-2.0
// Engines whose kernels are C++ functions.
#pragma once

#include <functional>
#include <vector>

#include "runtime/context.h"
#include "tests/engine/engines.h"

namespace ingot::core::testing {

using TestKernel = std::function<int64_t(const KernelCall&)>;

// Runs image i as function i of the list.
class TestExecutor final : public Executor {
 public:
  explicit TestExecutor(std::vector<TestKernel> kernels) : kernels_(std::move(kernels)) {}
  std::string_view name() const override { return "null"; }
  std::string missing(const Image&) const override { return {}; }
  std::unique_ptr<LoadedImages> load(const EngineData&, const EngineFile*) const override {
    return std::make_unique<LoadedImages>();
  }
  bool is_valid(const Launch&, size_t) const override { return true; }
  std::unique_ptr<Queue> open_queue(const MemoryAllocator*) const override {
    return std::make_unique<TestQueue>(kernels_);
  }

 private:
  class TestQueue final : public Queue {
   public:
    explicit TestQueue(const std::vector<TestKernel>& kernels) : kernels_(kernels) {}
    std::optional<CallFailure> run(const CallSpan& span) override {
      for (const KernelCall& call : span.calls) {
        if (call.launch == nullptr)
          copy_on_host(call);
        else if (const int64_t status = kernels_[call.launch->image](call); status != 0)
          return CallFailure{call.launch, status};
      }
      return std::nullopt;
    }

   private:
    const std::vector<TestKernel>& kernels_;
  };

  std::vector<TestKernel> kernels_;
};

inline float* floats(const KernelCall& call, size_t index) {
  return static_cast<float*>(call.buffers[index]);
}

inline EngineData engine_of(Program main, size_t images = 1) {
  EngineData engine{.name = "test", .target = "null"};
  for (size_t i = 0; i < images; ++i)
    engine.images.push_back({.kernel = "k", .target = "null", .code = {std::byte{}}});
  engine.main = std::move(main);
  return engine;
}

// init: p = 10 * w; main: y = p + b, with w, b weights of the model.
inline EngineData weighted_engine() {
  EngineData engine{.name = "weighted", .target = "null", .weights_form = WeightsForm::kOriginal};
  engine.images = {{.kernel = "scale", .target = "null", .code = {std::byte{}}},
                   {.kernel = "add", .target = "null", .code = {std::byte{}}}};
  engine.sources.push_back({.name = "w", .shape = {2}, .data = bytes_of({1, 2})});
  engine.sources.push_back({.name = "b", .shape = {2}, .data = bytes_of({3, 4})});
  engine.weights.push_back(
      {.name = "w", .type = f32({2}), .origin = FromSource{0}, .data = engine.sources[0].data, .bytes = 8});
  engine.weights.push_back(
      {.name = "b", .type = f32({2}), .origin = FromSource{1}, .data = engine.sources[1].data, .bytes = 8});
  engine.weights.push_back({.name = "init.0", .type = f32({2}), .origin = FromInit{0}, .bytes = 8});
  engine.init.name = "init";
  const BufferId w = add_buffer(engine.init, "w", f32({2}), WeightStorage{0});
  const BufferId made = add_output(engine.init, "p", f32({2}));
  engine.init.steps = {kernel_step("scale", {w}, {made})};
  engine.main.name = "main";
  const BufferId p = add_buffer(engine.main, "p", f32({2}), WeightStorage{2});
  const BufferId b = add_buffer(engine.main, "b", f32({2}), WeightStorage{1});
  const BufferId y = add_output(engine.main, "y", f32({2}));
  engine.main.steps = {kernel_step("add", {p, b}, {y})};
  engine.main.steps[0].as<KernelStep>()->launch.image = 1;
  return engine;
}

inline std::vector<TestKernel> weighted_kernels() {
  return {[](const KernelCall& call) -> int64_t {
            for (int i = 0; i < 2; ++i) floats(call, 1)[i] = 10 * floats(call, 0)[i];
            return 0;
          },
          [](const KernelCall& call) -> int64_t {
            for (int i = 0; i < 2; ++i) floats(call, 2)[i] = floats(call, 0)[i] + floats(call, 1)[i];
            return 0;
          }};
}

// One output a vector; memory lives as long as the object.
struct Outputs {
  std::vector<Tensor> tensors;
  OutputAllocator allocator() {
    return {[](void* context, size_t index, DType dtype, std::span<const int64_t> shape, size_t) -> void* {
              auto& own = *static_cast<Outputs*>(context);
              if (own.tensors.size() <= index) own.tensors.resize(index + 1);
              own.tensors[index] = make_tensor(dtype, {shape.begin(), shape.end()});
              return own.tensors[index].data.get();
            },
            this};
  }
  const float* at(size_t index) const { return reinterpret_cast<const float*>(tensors[index].data.get()); }
};

inline Argument argument(const Tensor& tensor) {
  return {tensor.data.get(), tensor.dtype, static_cast<int32_t>(tensor.shape.size()), tensor.shape.data(),
          nullptr};
}

inline Tensor filled(std::vector<int64_t> shape, float first, float step = 1) {
  Tensor tensor = make_tensor(DType::kF32, std::move(shape));
  for (int64_t i = 0; i < tensor.elements(); ++i)
    reinterpret_cast<float*>(tensor.data.get())[i] = first + step * static_cast<float>(i);
  return tensor;
}

inline Step elementwise_step(std::string name, uint32_t image, std::vector<BufferId> reads, BufferId write,
                             Dim count) {
  Step step = kernel_step(std::move(name), std::move(reads), {write});
  step.as<KernelStep>()->launch = {.image = image, .symbols = {count}};
  return step;
}

}  // namespace ingot::core::testing
