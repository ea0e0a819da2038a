// SPDX-License-Identifier: Apache-2.0
// Once a shape was seen, a run allocates nothing.
#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <new>

#include "tests/runtime/fixtures.h"

namespace {
std::atomic<size_t> allocations{0};

void* tried(size_t bytes) noexcept {
  ++allocations;
  return std::malloc(bytes == 0 ? 1 : bytes);
}

void* counted(size_t bytes) {
  if (void* memory = tried(bytes)) return memory;
  throw std::bad_alloc();
}

// Apart, so that the compiler does not weigh free against our own new.
[[gnu::noinline]] void release(void* memory) noexcept { std::free(memory); }
}  // namespace

void* operator new(size_t bytes) { return counted(bytes); }
void* operator new[](size_t bytes) { return counted(bytes); }
void* operator new(size_t bytes, const std::nothrow_t&) noexcept { return tried(bytes); }
void* operator new[](size_t bytes, const std::nothrow_t&) noexcept { return tried(bytes); }
void operator delete(void* memory) noexcept { release(memory); }
void operator delete[](void* memory) noexcept { release(memory); }
void operator delete(void* memory, size_t) noexcept { release(memory); }
void operator delete[](void* memory, size_t) noexcept { release(memory); }

namespace ingot::core {
namespace {

using namespace testing;

TEST(Context, AllocatesNothingOnceAShapeWasSeen) {
  Program program = chain();
  program.steps[1] = kernel_step("k", {1}, {2});
  program.steps[1].as<KernelStep>()->launch.symbols = {Dim::symbol("S")};
  const TestExecutor executor({[](const KernelCall& call) -> int64_t {
    std::memcpy(call.buffers[1], call.buffers[0], static_cast<size_t>(call.symbols[0]) * 4);
    return 0;
  }});
  const Executor* executors[] = {&executor};
  Host host({.threads = 1}, executors);
  Context context(Engine::create(std::make_shared<EngineData>(engine_of(program)), host));
  const Tensor x = filled({1, 8}, 0), other = filled({1, 9}, 0);
  const Tensor y = filled({1, 9}, 0);
  const OutputAllocator allocator{
      [](void* memory, size_t, DType, std::span<const int64_t>, size_t) { return memory; }, y.data.get()};
  const Argument first[] = {argument(x)}, second[] = {argument(other)};
  context.run(first, allocator);
  context.run(second, allocator);
  const size_t before = allocations;
  for (int i = 0; i < 10; ++i) {
    context.run(second, allocator);
    context.run(second, allocator);
  }
  EXPECT_EQ(allocations, before);
}

}  // namespace
}  // namespace ingot::core
