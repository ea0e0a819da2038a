// SPDX-License-Identifier: Apache-2.0
// Routines work in memory of their context.
#include <gtest/gtest.h>

#include <cstdlib>
#include <map>

#include "support/error.h"
#include "tests/runtime/fixtures.h"

namespace ingot::core {
namespace {

using namespace testing;

constexpr int64_t kExtent = 5000;
const std::vector<int64_t> kShape = {2, kExtent};

// x -> the routine's results, without a buffer in the arena.
EngineData engine_of_routine(std::string routine, NamedValues attributes, std::vector<DType> inputs,
                             std::vector<DType> outputs) {
  Program program{.name = "main"};
  Step step{.name = routine, .action = RoutineStep{routine, std::move(attributes)}};
  const Shape shape(kShape.begin(), kShape.end());
  for (size_t i = 0; i < inputs.size(); ++i)
    step.uses.push_back({add_input(program, "x" + std::to_string(i), {inputs[i], shape, {}}), true, false});
  for (size_t i = 0; i < outputs.size(); ++i)
    step.uses.push_back({add_output(program, "y" + std::to_string(i), {outputs[i], shape, {}}), false, true});
  program.steps = {std::move(step)};
  EngineData engine{.name = "test", .target = "null"};
  engine.main = std::move(program);
  return engine;
}

// The caller's memory, with what is held of it.
struct Accounts {
  std::map<void*, size_t> held;
  size_t requests = 0;
  bool refuses = false;

  size_t bytes() const {
    size_t sum = 0;
    for (const auto& [memory, bytes] : held) sum += bytes;
    return sum;
  }
  MemoryAllocator allocator() {
    return {[](void* user, size_t bytes, size_t alignment) -> void* {
              auto& own = *static_cast<Accounts*>(user);
              if (own.refuses) return nullptr;
              ++own.requests;
              void* memory = std::aligned_alloc(alignment, (bytes + alignment - 1) / alignment * alignment);
              own.held[memory] = bytes;
              return memory;
            },
            [](void* user, void* memory, size_t) {
              static_cast<Accounts*>(user)->held.erase(memory);
              std::free(memory);
            },
            this};
  }
};

class RoutineMemory : public ::testing::Test {
 protected:
  void run(const EngineData& engine, size_t least) {
    std::vector<Tensor> inputs;
    for (const Port& port : engine.main.inputs) inputs.push_back(make_tensor(port.type.dtype, kShape));
    std::vector<Argument> arguments;
    for (const Tensor& input : inputs) arguments.push_back(argument(input));
    Outputs outputs;
    {
      Context context(Engine::create(std::make_shared<EngineData>(engine), host_),
                      {.allocator = accounts_.allocator()});
      accounts_.refuses = true;
      EXPECT_THROW(context.run(arguments, outputs.allocator()), DeviceError);
      accounts_.refuses = false;
      context.run(arguments, outputs.allocator());
      EXPECT_GE(context.memory().scratch, least);
      EXPECT_GE(accounts_.bytes(), context.memory().scratch);
      const size_t requests = accounts_.requests;
      context.run(arguments, outputs.allocator());
      EXPECT_EQ(accounts_.requests, requests);
    }
    EXPECT_TRUE(accounts_.held.empty());
  }

  Accounts accounts_;
  const TestExecutor executor_{{}};
  const Executor* executors_[1] = {&executor_};
  Host host_{{.threads = 2}, executors_};
};

TEST_F(RoutineMemory, OfSorting) {
  run(engine_of_routine("sort", {{"axis", 1}, {"descending", false}}, {DType::kF32},
                        {DType::kF32, DType::kI64}),
      2 * kExtent * 8);
}

TEST_F(RoutineMemory, OfScattering) {
  run(engine_of_routine("scatter_reduce", {{"axis", 1}, {"reduce", "mean"}, {"include_self", true}},
                        {DType::kF32, DType::kI64, DType::kF32}, {DType::kF32}),
      2 * kExtent * 8);
}

TEST_F(RoutineMemory, OfScatteringHalves) {
  run(engine_of_routine("scatter_reduce", {{"axis", 1}, {"reduce", "mean"}, {"include_self", true}},
                        {DType::kF16, DType::kI64, DType::kF16}, {DType::kF16}),
      2 * kExtent * (3 * 4 + 8));
}

}  // namespace
}  // namespace ingot::core
