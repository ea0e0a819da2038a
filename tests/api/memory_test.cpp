// SPDX-License-Identifier: Apache-2.0
// Every allocation fails in turn, alone or with all that follow: each call returns a status or succeeds,
// nothing ends the process, and existing objects stay usable.
#include <dlfcn.h>

#include <array>
#include <atomic>
#include <cstdlib>
#include <new>

#include "ingot/context.h"
#include "tests/api/fixtures.h"

namespace {

// Which allocation fails, counted from now on; negative: none.
std::atomic<int64_t> left{-1};
std::atomic<bool> all_after{false};
std::atomic<int64_t> failures{0};

bool fails() {
  int64_t now = left.load(std::memory_order_relaxed);
  if (now < 0) return false;
  if (now > 0) {
    left.fetch_sub(1, std::memory_order_relaxed);
    return false;
  }
  if (!all_after) left = -1;
  failures.fetch_add(1, std::memory_order_relaxed);
  return true;
}

void* allocate(size_t bytes, size_t alignment) {
  if (fails()) return nullptr;
  if (alignment <= alignof(std::max_align_t)) return std::malloc(bytes == 0 ? 1 : bytes);
  void* memory = nullptr;
  return ::posix_memalign(&memory, alignment, bytes == 0 ? 1 : bytes) == 0 ? memory : nullptr;
}

// Apart, so that the compiler does not weigh free against our own new.
[[gnu::noinline]] void release(void* memory) noexcept { std::free(memory); }

void* allocate_or_throw(size_t bytes, size_t alignment) {
  void* memory = allocate(bytes, alignment);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}

}  // namespace

// Those of the whole process, the library's too.
void* operator new(size_t bytes) { return allocate_or_throw(bytes, 1); }
void* operator new[](size_t bytes) { return allocate_or_throw(bytes, 1); }
void* operator new(size_t bytes, std::align_val_t alignment) {
  return allocate_or_throw(bytes, static_cast<size_t>(alignment));
}
void* operator new[](size_t bytes, std::align_val_t alignment) {
  return allocate_or_throw(bytes, static_cast<size_t>(alignment));
}
void* operator new(size_t bytes, const std::nothrow_t&) noexcept { return allocate(bytes, 1); }
void* operator new[](size_t bytes, const std::nothrow_t&) noexcept { return allocate(bytes, 1); }
void operator delete(void* memory) noexcept { release(memory); }
void operator delete[](void* memory) noexcept { release(memory); }
void operator delete(void* memory, size_t) noexcept { release(memory); }
void operator delete[](void* memory, size_t) noexcept { release(memory); }
void operator delete(void* memory, std::align_val_t) noexcept { release(memory); }
void operator delete[](void* memory, std::align_val_t) noexcept { release(memory); }
void operator delete(void* memory, size_t, std::align_val_t) noexcept { release(memory); }
void operator delete[](void* memory, size_t, std::align_val_t) noexcept { release(memory); }

// The allocator of arenas.
extern "C" void* aligned_alloc(size_t alignment, size_t bytes) {
  using Function = void* (*)(size_t, size_t);
  static const auto next = reinterpret_cast<Function>(::dlsym(RTLD_NEXT, "aligned_alloc"));
  return fails() ? nullptr : next(alignment, bytes);
}

namespace ingot::core::testing {
namespace {

// Fails the first, second ... allocation of `action` until it makes fewer; returns how many failures it met.
// `action` returns the code of its error, "" for success.
template <typename Action>
int fail_each_allocation(bool all, Action action) {
  constexpr int kMost = 20000;
  for (int k = 0; k < kMost; ++k) {
    all_after = all;
    failures = 0;
    left = k;
    const std::string code = action();
    left = -1;
    if (failures == 0) {
      EXPECT_EQ(code, "");
      return k;
    }
    const bool known = code.empty() || code == "INGOT-D004" || code == "INGOT-D301" || code == "INGOT-D003" ||
                       code == "INGOT-D302";
    EXPECT_TRUE(known) << code << " at " << k;
  }
  return kMost;
}

// Codes are read while nothing fails.
std::string quiet_code(ingot_status* status) {
  left = -1;
  return code_of(status);
}

class MemoryTest : public ::testing::TestWithParam<bool> {
 protected:
  MemoryTest() : file_(weight_engine()), path_(file_.path()) { load(path_); }
  EngineOnDisk file_;
  const std::string path_;
};

float buffer[8];

std::string run_once(ingot_context* context) {
  float x[] = {5, 6};
  const int64_t shape[] = {1, 2};
  const ingot_tensor input{x, INGOT_F32, 2, shape, nullptr};
  const auto give = [](void*, size_t index, int32_t, int32_t, const int64_t*, size_t) -> void* {
    return buffer + 4 * index;
  };
  return quiet_code(ingot_context_run(context, 1, &input, give, nullptr));
}

TEST_P(MemoryTest, Loads) {
  EXPECT_GT(fail_each_allocation(GetParam(),
                                 [&] {
                                   ingot_engine* engine = nullptr;
                                   const std::string code =
                                       quiet_code(ingot_engine_load(path_.c_str(), nullptr, &engine));
                                   ingot_engine_free(engine);
                                   return code;
                                 }),
            20);
}

TEST_P(MemoryTest, MakesContextsAndRuns) {
  const auto engine = load(path_);
  EXPECT_GT(fail_each_allocation(GetParam(),
                                 [&]() -> std::string {
                                   ingot_context* made = nullptr;
                                   ingot_status* status = ingot_context_create(engine.get(), &made);
                                   const Owned<ingot_context> context(made);
                                   return status != nullptr ? quiet_code(status) : run_once(made);
                                 }),
            5);
  const auto context = context_of(engine.get());
  EXPECT_EQ(run_once(context.get()), "");
  EXPECT_EQ(buffer[1], 6);
}

TEST_P(MemoryTest, RunsInOneContext) {
  const auto engine = load(path_);
  const auto context = context_of(engine.get());
  fail_each_allocation(GetParam(), [&] { return run_once(context.get()); });
  EXPECT_EQ(run_once(context.get()), "");
  EXPECT_EQ(buffer[1], 6);
}

TEST_P(MemoryTest, RefitsWhollyOrNotAtAll) {
  const auto engine = load(path_);
  const auto context = context_of(engine.get());
  float weight = 1;
  const int64_t four = 4;
  const char* const name = "w";
  float first[] = {1, 1, 1, 1};
  const ingot_tensor tensor{first, INGOT_F32, 1, &four, nullptr};
  ASSERT_EQ(code_of(ingot_engine_refit(engine.get(), 1, &name, &tensor, nullptr)), "");
  EXPECT_GT(fail_each_allocation(GetParam(),
                                 [&] {
                                   const float before = weight;
                                   weight += 1;
                                   float values[] = {weight, weight, weight, weight};
                                   const ingot_tensor tensor{values, INGOT_F32, 1, &four, nullptr};
                                   const std::string code = quiet_code(
                                       ingot_engine_refit(engine.get(), 1, &name, &tensor, nullptr));
                                   if (!code.empty()) weight = before;
                                   EXPECT_EQ(run_once(context.get()), "");
                                   EXPECT_EQ(buffer[4], weight);
                                   EXPECT_EQ(buffer[7], weight);
                                   return code;
                                 }),
            3);
}

TEST_P(MemoryTest, SavesWhollyOrNotAtAll) {
  const auto engine = load(path_);
  const std::string target = file_.path("saved");
  const auto verified = [&] { return quiet_code(ingot_verify_file(target.c_str())); };
  ASSERT_EQ(code_of(ingot_engine_save(engine.get(), target.c_str())), "");
  EXPECT_GT(fail_each_allocation(GetParam(),
                                 [&] {
                                   const std::string code =
                                       quiet_code(ingot_engine_save(engine.get(), target.c_str()));
                                   EXPECT_EQ(verified(), "");
                                   return code;
                                 }),
            10);
}

TEST_P(MemoryTest, InspectsAndCopies) {
  const auto engine = load(path_);
  fail_each_allocation(GetParam(), [&] {
    ingot_text* text = nullptr;
    const std::string code = quiet_code(ingot_engine_inspect(engine.get(), &text));
    ingot_text_free(text);
    return code;
  });
  fail_each_allocation(GetParam(), [&] {
    ingot_engine* copy = nullptr;
    const std::string code = quiet_code(ingot_engine_copy(engine.get(), &copy));
    ingot_engine_free(copy);
    return code;
  });
}

// Other errors, when there is no memory to describe them.
TEST_P(MemoryTest, RefusesWithoutMemory) {
  ingot_engine* engine = nullptr;
  const std::string missing = file_.path("missing");
  for (int k = 0; k < 200; ++k) {
    all_after = GetParam();
    left = k;
    ingot_status* status = ingot_engine_load(missing.c_str(), nullptr, &engine);
    left = -1;
    ASSERT_NE(status, nullptr);
    const std::string code = code_of(status);
    EXPECT_TRUE(code == "INGOT-D004" || code == "INGOT-U120") << code;
  }
}

TEST_P(MemoryTest, TheHeadersThrow) {
  const std::vector<float> values = {1, 2};
  EXPECT_GT(fail_each_allocation(GetParam(),
                                 [&]() -> std::string {
                                   try {
                                     ingot::Context context(ingot::Engine::load(path_));
                                     const std::array inputs = {ingot::Tensor(values, {1, 2})};
                                     std::vector<ingot::Tensor> outputs;
                                     context.run(inputs, outputs);
                                     left = -1;
                                     return outputs[0].values<float>()[1] == 2 ? "" : "wrong";
                                   } catch (const std::bad_alloc&) {
                                     left = -1;
                                     return "INGOT-D004";
                                   } catch (const ingot::Error& error) {
                                     left = -1;
                                     return error.code();
                                   }
                                 }),
            30);
}

INSTANTIATE_TEST_SUITE_P(Allocations, MemoryTest, ::testing::Bool(),
                         [](const auto& info) { return info.param ? "AllAfter" : "One"; });

}  // namespace
}  // namespace ingot::core::testing
