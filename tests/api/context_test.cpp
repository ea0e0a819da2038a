// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include "tests/api/fixtures.h"

namespace ingot::core::testing {
namespace {

using ::testing::ElementsAre;

class ContextTest : public ::testing::Test {
 protected:
  std::string run(const ingot_tensor& input, size_t count = 1) {
    return code_of(ingot_context_run(context_.get(), count, &input, FloatOutputs::allocate, &outputs_));
  }
  ingot_tensor tensor() { return {values_.data(), INGOT_F32, 2, shape_, nullptr}; }

  EngineOnDisk file_{echo_engine()};
  Owned<ingot_engine> engine_ = load(file_.path());
  Owned<ingot_context> context_ = context_of(engine_.get());
  std::vector<float> values_ = {1, 2, 3, 4, 5, 6};
  int64_t shape_[2] = {2, 3};
  FloatOutputs outputs_;
};

TEST_F(ContextTest, RunsAndAllocatesThroughTheCaller) {
  EXPECT_EQ(run(tensor()), "");
  EXPECT_THAT(outputs_.shapes[0], ElementsAre(2, 3));
  EXPECT_THAT(outputs_.values[0], ElementsAre(1, 2, 3, 4, 5, 6));
}

TEST_F(ContextTest, OutlivesTheEngineHandle) {
  engine_.reset();
  EXPECT_EQ(run(tensor()), "");
}

TEST_F(ContextTest, ReadsStrides) {
  const int64_t transposed[] = {1, 2};
  ingot_tensor input = tensor();
  input.strides = transposed;
  EXPECT_EQ(run(input), "");
  EXPECT_THAT(outputs_.values[0], ElementsAre(1, 3, 5, 2, 4, 6));
}

TEST_F(ContextTest, RefusesWrongInputs) {
  EXPECT_EQ(run(tensor(), 0), "INGOT-U300");
  ingot_tensor input = tensor();
  input.rank = 1;
  EXPECT_EQ(run(input), "INGOT-U301");
  input = tensor();
  input.dtype = INGOT_F64;
  EXPECT_EQ(run(input), "INGOT-U302");
  input.dtype = 99;
  EXPECT_EQ(run(input), "INGOT-U016");
  input = tensor();
  input.rank = -1;
  EXPECT_EQ(run(input), "INGOT-U016");
  input = tensor();
  input.data = nullptr;
  EXPECT_EQ(run(input), "INGOT-U012");
  input = tensor();
  input.shape = nullptr;
  EXPECT_EQ(run(input), "INGOT-U012");
  shape_[1] = 257;
  EXPECT_EQ(run(tensor()), "INGOT-U305");
  shape_[1] = 3;
  EXPECT_EQ(run(tensor()), "");  // none of these broke the context
}

TEST_F(ContextTest, RefusesAddressesThatOverflow) {
  const int64_t most = INT64_MAX, least = INT64_MIN;
  for (const std::vector<int64_t>& strides : {std::vector{most, int64_t{1}},
                                              {most / 4, most / 4},
                                              {least, 1},
                                              {1, least},
                                              {most / 4, -1},
                                              {-1, most / 8}}) {
    ingot_tensor input = tensor();
    input.strides = strides.data();
    EXPECT_EQ(run(input), "INGOT-U101") << strides[0] << " " << strides[1];
  }
  ingot_tensor input = tensor();
  for (const uint64_t offset : {UINT64_MAX, UINT64_MAX - 64}) {
    input.byte_offset = offset;
    EXPECT_EQ(run(input), "INGOT-U101");
  }
  shape_[0] = shape_[1] = most / 2;
  EXPECT_EQ(run(tensor()), "INGOT-U101");
  shape_[0] = 2, shape_[1] = 3;
  EXPECT_EQ(run(tensor()), "");
}

TEST_F(ContextTest, IgnoresStridesThatReadNothing) {
  const int64_t strides[] = {INT64_MAX, 1};
  ingot_tensor input = tensor();
  input.strides = strides;
  shape_[0] = 1;
  EXPECT_EQ(run(input), "");
  EXPECT_THAT(outputs_.values[0], ElementsAre(1, 2, 3));
}

TEST_F(ContextTest, ReportsAnAllocatorWithoutMemory) {
  const auto refuse = [](void*, size_t, int32_t, int32_t, const int64_t*, size_t) -> void* {
    return nullptr;
  };
  const ingot_tensor input = tensor();
  const Owned<ingot_status> status(ingot_context_run(context_.get(), 1, &input, refuse, nullptr));
  EXPECT_EQ(ingot_status_kind(status.get()), INGOT_DEVICE_ERROR);
  EXPECT_STREQ(ingot_status_code(status.get()), "INGOT-D302");
}

// The engine is a chain of three copies.
TEST_F(ContextTest, ShowsWhatStepsCompute) {
  struct Seen {
    std::vector<size_t> steps;
    std::vector<float> values;
  } seen;
  const auto observe = [](void* user, size_t step, const char* name, const ingot_tensor* value) {
    Seen& own = *static_cast<Seen*>(user);
    EXPECT_STRNE(name, "");
    EXPECT_THAT(std::span(value->shape, static_cast<size_t>(value->rank)), ElementsAre(2, 3));
    const auto* data = static_cast<const float*>(value->data);
    own.steps.push_back(step);
    own.values.assign(data, data + 6);
  };
  EXPECT_EQ(code_of(ingot_context_set_observer(context_.get(), observe, &seen)), "");
  EXPECT_EQ(run(tensor()), "");
  EXPECT_THAT(seen.steps, ElementsAre(0, 1, 2));
  EXPECT_EQ(seen.values, outputs_.values[0]);
  EXPECT_EQ(code_of(ingot_context_set_observer(context_.get(), nullptr, nullptr)), "");
  EXPECT_EQ(run(tensor()), "");
  EXPECT_EQ(seen.steps.size(), 3U);
  EXPECT_EQ(code_of(ingot_context_set_observer(nullptr, observe, &seen)), "INGOT-U012");
}

TEST_F(ContextTest, TellsOutputSizesWithoutRunning) {
  const ingot_tensor input = tensor();
  int64_t sizes[2] = {0, 0};
  size_t length = 0;
  ASSERT_EQ(code_of(ingot_context_output_shapes(context_.get(), 1, &input, sizes, 1, &length)), "");
  EXPECT_EQ(length, 2u);
  EXPECT_THAT(sizes, ElementsAre(2, 0));  // no more than there is room for
  ASSERT_EQ(code_of(ingot_context_output_shapes(context_.get(), 1, &input, sizes, 2, &length)), "");
  EXPECT_THAT(sizes, ElementsAre(2, 3));
}

TEST_F(ContextTest, CountsItsMemory) {
  EXPECT_EQ(run(tensor()), "");
  ingot_memory memory{};
  memory.struct_size = sizeof(memory);
  ASSERT_EQ(code_of(ingot_context_memory(context_.get(), &memory)), "");
  EXPECT_GE(memory.arena, 2 * sizeof(float) * 6);
  EXPECT_EQ(memory.cached_plans, 1u);
  EXPECT_EQ(memory.weights, 0u);
}

TEST_F(ContextTest, HasNoStateToBind) {
  EXPECT_EQ(code_of(ingot_context_bind_state(context_.get(), 0, nullptr)), "INGOT-U307");
  EXPECT_EQ(code_of(ingot_context_reset_states(context_.get())), "");
}

TEST(Threads, AreSetWithinTheirRange) {
  EXPECT_EQ(code_of(ingot_set_threads(1)), "");
  EXPECT_EQ(ingot_get_threads(), 1);
  EXPECT_EQ(code_of(ingot_set_threads(-1)), "INGOT-U002");
  EXPECT_EQ(code_of(ingot_set_spin(-1)), "INGOT-U002");
  EXPECT_EQ(code_of(ingot_set_spin(0)), "");
  EXPECT_EQ(ingot_get_threads(), 1);
  EXPECT_EQ(code_of(ingot_set_threads(0)), "");
  EXPECT_GE(ingot_get_threads(), 1);
}

}  // namespace
}  // namespace ingot::core::testing
