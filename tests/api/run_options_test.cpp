// SPDX-License-Identifier: Apache-2.0
// Contexts and runs with options, and inputs by name.
#include <gmock/gmock.h>

#include <chrono>
#include <filesystem>
#include <set>

#include "tests/api/fixtures.h"

namespace ingot::core::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

int64_t nanoseconds_from_now(int64_t more) {
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::nanoseconds>(now).count() + more;
}

// z = x + y is too much for an engine without kernels: it returns both.
EngineData two_input_engine() {
  EngineData engine{.name = "two", .origin = "a test", .key = "key of two", .target = "null"};
  Program& main = engine.main;
  for (uint32_t i = 0; i < 2; ++i) {
    const std::string name = i == 0 ? "ids" : "mask";
    const BufferId input = add_buffer(main, name, f32({2}), InputStorage{i});
    main.inputs.push_back({name, f32({2}), input});
    main.steps.push_back(copy_step(input, add_output(main, name + "_out", f32({2}))));
  }
  return engine;
}

class RunOptionsTest : public ::testing::Test {
 protected:
  ingot_run_options options() {
    return {.struct_size = sizeof(ingot_run_options), .allocate = FloatOutputs::allocate, .user = &outputs_};
  }
  std::string run(const ingot_run_options& options, const std::vector<const char*>& names,
                  const std::vector<ingot_tensor>& inputs) {
    ingot_status* status = ingot_context_run_with(
        context_.get(), inputs.size(), names.empty() ? nullptr : names.data(), inputs.data(), &options);
    text_ = ingot_status_text(status);
    return code_of(status);
  }
  ingot_tensor ids() { return {ids_, INGOT_F32, 1, &two_, nullptr}; }
  ingot_tensor mask() { return {mask_, INGOT_F32, 1, &two_, nullptr}; }

  EngineOnDisk file_{two_input_engine()};
  Owned<ingot_engine> engine_ = load(file_.path());
  Owned<ingot_context> context_ = context_of(engine_.get());
  float ids_[2] = {1, 2}, mask_[2] = {3, 4};
  int64_t two_ = 2;
  FloatOutputs outputs_;
  std::string text_;
};

TEST_F(RunOptionsTest, TakeInputsInOrderOrByName) {
  EXPECT_EQ(run(options(), {}, {ids(), mask()}), "");
  EXPECT_THAT(outputs_.values[0], ElementsAre(1, 2));
  EXPECT_EQ(run(options(), {"mask", "ids"}, {mask(), ids()}), "");
  EXPECT_THAT(outputs_.values[0], ElementsAre(1, 2));
  EXPECT_THAT(outputs_.values[1], ElementsAre(3, 4));
}

TEST_F(RunOptionsTest, RefuseNamesThatDoNotFit) {
  EXPECT_EQ(run(options(), {"ids", "other"}, {ids(), mask()}), "INGOT-U318");
  EXPECT_THAT(text_, HasSubstr("no input 'other'; it has 'ids', 'mask'"));
  EXPECT_EQ(run(options(), {"ids", "ids"}, {ids(), mask()}), "INGOT-U318");
  EXPECT_THAT(text_, HasSubstr("'ids' is given twice"));
  EXPECT_EQ(run(options(), {"mask"}, {mask()}), "INGOT-U318");
  EXPECT_THAT(text_, HasSubstr("'ids' is missing"));
  EXPECT_EQ(run(options(), {"ids", nullptr}, {ids(), mask()}), "INGOT-U012");
  EXPECT_EQ(run(options(), {"ids", "mask"}, {ids(), mask()}), "");
}

TEST_F(RunOptionsTest, FindPortsByName) {
  size_t index = 7;
  EXPECT_EQ(code_of(ingot_engine_find_input(engine_.get(), "mask", &index)), "");
  EXPECT_EQ(index, 1u);
  EXPECT_EQ(code_of(ingot_engine_find_output(engine_.get(), "ids_out", &index)), "");
  EXPECT_EQ(index, 0u);
  EXPECT_EQ(code_of(ingot_engine_find_output(engine_.get(), "ids", &index)), "INGOT-U318");
  EXPECT_EQ(code_of(ingot_engine_find_state(engine_.get(), "ids", &index)), "INGOT-U318");
}

TEST_F(RunOptionsTest, EndRunsThatAreCancelledOrLate) {
  int32_t cancel = 1;
  ingot_run_options cancelled = options(), late = options(), timely = options();
  cancelled.cancel = &cancel;
  late.deadline_ns = nanoseconds_from_now(-1);
  timely.deadline_ns = nanoseconds_from_now(int64_t{3600} * 1'000'000'000);
  EXPECT_EQ(run(cancelled, {}, {ids(), mask()}), "INGOT-U316");
  EXPECT_EQ(run(late, {}, {ids(), mask()}), "INGOT-U317");
  EXPECT_EQ(run(timely, {}, {ids(), mask()}), "");
  cancel = 0;
  EXPECT_EQ(run(cancelled, {}, {ids(), mask()}), "");
  EXPECT_THAT(outputs_.values[1], ElementsAre(3, 4));
}

// Cancelled after the run began: by the allocator, which is called before the first step.
TEST_F(RunOptionsTest, LookAtTheFlagWhileTheyRun) {
  int32_t cancel = 0;
  static int32_t* flag = nullptr;
  flag = &cancel;
  ingot_run_options given = options();
  given.cancel = &cancel;
  given.allocate = [](void* user, size_t index, int32_t dtype, int32_t rank, const int64_t* shape,
                      size_t bytes) {
    *flag = 1;
    return FloatOutputs::allocate(user, index, dtype, rank, shape, bytes);
  };
  EXPECT_EQ(run(given, {}, {ids(), mask()}), "INGOT-U316");
  EXPECT_EQ(run(options(), {}, {ids(), mask()}), "");
}

// The first step writes the flag, so the second one does not run.
TEST_F(RunOptionsTest, LookAtTheFlagBetweenSteps) {
  alignas(64) float results[2][16] = {};
  ingot_run_options given = options();
  given.user = results;
  given.allocate = [](void* user, size_t index, int32_t, int32_t, const int64_t*, size_t) -> void* {
    return static_cast<float(*)[16]>(user)[index];
  };
  given.cancel = reinterpret_cast<const int32_t*>(results[0]);
  EXPECT_EQ(run(given, {}, {ids(), mask()}), "INGOT-U316");
  EXPECT_EQ(results[0][0], 1.0F);
  EXPECT_EQ(results[1][0], 0.0F);
}

TEST_F(RunOptionsTest, HaveASizeAndAnAllocator) {
  ingot_run_options given = options();
  given.struct_size = 8;
  EXPECT_EQ(run(given, {}, {ids(), mask()}), "INGOT-U013");
  given = options();
  given.allocate = nullptr;
  EXPECT_EQ(run(given, {}, {ids(), mask()}), "INGOT-U012");
  EXPECT_EQ(code_of(ingot_context_run_with(context_.get(), 0, nullptr, nullptr, nullptr)), "INGOT-U012");
  struct {
    ingot_run_options known;
    int64_t added = 1;
  } newer{options()};
  newer.known.struct_size = sizeof(newer);
  EXPECT_EQ(run(newer.known, {}, {ids(), mask()}), "");
}

TEST_F(RunOptionsTest, TakeHostTensorsWithAnOffset) {
  float values[4] = {0, 0, 5, 6};
  ingot_tensor input{values, INGOT_F32, 1, &two_, nullptr, INGOT_DEVICE_CPU, 0, 2 * sizeof(float)};
  EXPECT_EQ(run(options(), {}, {input, mask()}), "");
  EXPECT_THAT(outputs_.values[0], ElementsAre(5, 6));
  input.device_type = INGOT_DEVICE_CUDA;
  EXPECT_EQ(run(options(), {}, {input, mask()}), "INGOT-U319");
  EXPECT_THAT(text_, HasSubstr("copy it to the host"));
  input.device_type = 7;
  EXPECT_EQ(run(options(), {}, {input, mask()}), "INGOT-N301");
  EXPECT_THAT(text_, HasSubstr("host memory"));
  input.device_type = INGOT_DEVICE_CPU;
  input.device_id = 1;
  EXPECT_EQ(run(options(), {}, {input, mask()}), "INGOT-N301");
}

class ContextOptionsTest : public ::testing::Test {
 protected:
  std::string create(const ingot_context_options& options) {
    ingot_context* context = nullptr;
    const std::string code = code_of(ingot_context_create_with(engine_.get(), &options, &context));
    context_.reset(context);
    return code;
  }
  static size_t tasks() {
    const std::filesystem::directory_iterator all("/proc/self/task");
    return static_cast<size_t>(std::distance(begin(all), end(all)));
  }

  EngineOnDisk file_{echo_engine()};
  Owned<ingot_engine> engine_ = load(file_.path());
  Owned<ingot_context> context_;
};

TEST_F(ContextOptionsTest, GiveAContextThreadsOfItsOwn) {
  const size_t before = tasks();
  ASSERT_EQ(create({.struct_size = sizeof(ingot_context_options), .threads = 2}), "");
  const auto threads = static_cast<size_t>(ingot_context_threads(context_.get()));
  EXPECT_TRUE(threads == 1 || threads == 2);  // one where the process may use one processor
  EXPECT_EQ(tasks(), before + threads - 1);
  context_.reset();
  EXPECT_EQ(tasks(), before);
  ASSERT_EQ(create({.struct_size = sizeof(ingot_context_options)}), "");
  EXPECT_EQ(ingot_context_threads(context_.get()), ingot_get_threads());
  EXPECT_EQ(tasks(), before);
  EXPECT_EQ(ingot_context_threads(nullptr), 0);
}

TEST_F(ContextOptionsTest, AreChecked) {
  EXPECT_EQ(create({.struct_size = sizeof(ingot_context_options), .threads = -1}), "INGOT-U002");
  EXPECT_EQ(create({.struct_size = sizeof(ingot_context_options), .threads = 1025}), "INGOT-U002");
  EXPECT_EQ(create({.struct_size = 4}), "INGOT-U013");
  for (const int32_t unknown : {-1, 2})
    EXPECT_EQ(create({.struct_size = sizeof(ingot_context_options), .check_indices = unknown}), "INGOT-U002");
  const ingot_allocator none{};
  EXPECT_EQ(create({.struct_size = sizeof(ingot_context_options), .allocator = &none}), "INGOT-U012");
}

// Hands out memory of the heap and keeps account of it.
struct Accounts {
  std::set<void*> held;
  size_t calls = 0;
  size_t refuse_from = SIZE_MAX;
  bool misaligned = false;

  ingot_allocator allocator() {
    return {[](void* user, size_t bytes, size_t alignment) -> void* {
              auto& own = *static_cast<Accounts*>(user);
              if (own.calls++ >= own.refuse_from) return nullptr;
              void* memory = ::operator new(bytes + alignment, std::align_val_t{alignment});
              if (own.misaligned) return static_cast<std::byte*>(memory) + 1;
              own.held.insert(memory);
              return memory;
            },
            [](void* user, void* memory, size_t) {
              auto& own = *static_cast<Accounts*>(user);
              if (own.misaligned) memory = static_cast<std::byte*>(memory) - 1;
              own.held.erase(memory);
              ::operator delete(memory, std::align_val_t{64});
            },
            this};
  }
};

std::string run_echo(ingot_context* context) {
  float x[] = {1, 2, 3, 4};
  const int64_t shape[] = {2, 2}, strides[] = {1, 2};
  const ingot_tensor input{x, INGOT_F32, 2, shape, strides};
  FloatOutputs outputs;
  const std::string code = code_of(ingot_context_run(context, 1, &input, FloatOutputs::allocate, &outputs));
  EXPECT_TRUE(!code.empty() || outputs.values[0] == std::vector<float>({1, 3, 2, 4}));
  return code;
}

TEST_F(ContextOptionsTest, TakeTheMemoryOfAContextFromTheCaller) {
  Accounts accounts;
  const ingot_allocator allocator = accounts.allocator();
  const ingot_context_options options{.struct_size = sizeof(ingot_context_options), .allocator = &allocator};
  ASSERT_EQ(create(options), "");
  EXPECT_EQ(run_echo(context_.get()), "");
  EXPECT_GE(accounts.held.size(), 2u);  // the arena, and a copy of the input
  context_.reset();
  EXPECT_TRUE(accounts.held.empty());
}

TEST_F(ContextOptionsTest, RefuseMemoryThatIsNotThereOrNotAligned) {
  Accounts accounts;
  const ingot_allocator allocator = accounts.allocator();
  const ingot_context_options options{.struct_size = sizeof(ingot_context_options), .allocator = &allocator};
  ASSERT_EQ(create(options), "");
  accounts.refuse_from = 1;
  EXPECT_EQ(run_echo(context_.get()), "INGOT-D303");
  accounts.refuse_from = SIZE_MAX;
  EXPECT_EQ(run_echo(context_.get()), "");
  context_.reset();
  EXPECT_TRUE(accounts.held.empty());
  accounts.misaligned = true;
  ASSERT_EQ(create(options), "");
  EXPECT_EQ(run_echo(context_.get()), "INGOT-D303");
}

}  // namespace
}  // namespace ingot::core::testing
