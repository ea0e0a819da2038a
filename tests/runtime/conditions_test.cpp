// SPDX-License-Identifier: Apache-2.0
#include "runtime/conditions.h"

#include <gmock/gmock.h>

#include "support/error.h"
#include "tests/runtime/fixtures.h"

namespace ingot::core {
namespace {

using ::testing::HasSubstr;
using namespace testing;

SizeCheck guard(const char* condition) {
  return {.kind = CheckKind::kGuard,
          .condition = parse_predicate(condition),
          .message = {},
          .node = "mul_3",
          .source = "model.py:7 in forward"};
}

// y = x for x: f32[B, S], counting its runs.
EngineData counted(int64_t& runs, std::vector<TestKernel>& kernels) {
  Program program = chain();
  program.steps[0] = elementwise_step("copy", 0, {0}, 1, Dim::symbol("B"));
  kernels = {[&runs](const KernelCall&) -> int64_t { return ++runs, 0; }};
  return engine_of(program);
}

std::string refusal(Context& context, std::vector<int64_t> shape) {
  Outputs outputs;
  const Tensor x = filled(std::move(shape), 0);
  try {
    context.run(std::vector<Argument>{argument(x)}, outputs.allocator());
  } catch (const UserError& error) {
    EXPECT_TRUE(outputs.tensors.empty());
    return error.what();
  }
  return "";
}

class ConditionsOfAnEngine : public ::testing::Test {
 protected:
  Context& context_with(std::vector<SizeCheck> checks) {
    std::vector<TestKernel> kernels;
    EngineData data = counted(runs_, kernels);
    data.checks = std::move(checks);
    executor_.emplace(std::move(kernels));
    executors_ = {&*executor_};
    host_.emplace(HostOptions{.threads = 1}, executors_);
    context_.emplace(Engine::create(std::make_shared<EngineData>(std::move(data)), *host_));
    return *context_;
  }
  int64_t runs_ = 0;
  std::optional<TestExecutor> executor_;
  std::vector<const Executor*> executors_;
  std::optional<Host> host_;
  std::optional<Context> context_;
};

TEST_F(ConditionsOfAnEngine, AreAskedBeforeAnythingRuns) {
  Context& context = context_with({guard("mod(B, 2) == 0"), guard("20 < B*S")});
  EXPECT_EQ(refusal(context, {4, 8}), "");
  EXPECT_EQ(runs_, 1);
  const std::string odd = refusal(context, {3, 8});
  EXPECT_THAT(odd, HasSubstr("[INGOT-U312]"));
  EXPECT_THAT(odd, HasSubstr("x.shape[0] % 2 == 0; here x.shape[0] is 3"));
  EXPECT_THAT(odd, HasSubstr("mul_3"));
  EXPECT_THAT(odd, HasSubstr("model.py:7 in forward"));
  EXPECT_THAT(refusal(context, {2, 8}),
              HasSubstr("x.shape[0]*x.shape[1] > 20; here x.shape[0] is 2, x.shape[1] is 8"));
  EXPECT_EQ(runs_, 1);
  EXPECT_EQ(refusal(context, {4, 8}), "");
  EXPECT_EQ(context.memory().cached_plans, 1u);
}

TEST_F(ConditionsOfAnEngine, LeaveOutWhatDoesNotMatter) {
  Context& context = context_with({guard("B <= 4 | mod(100, B - 4) == 0")});
  EXPECT_EQ(refusal(context, {4, 1}), "");  // would divide by zero
  EXPECT_EQ(refusal(context, {9, 1}), "");
  EXPECT_THAT(refusal(context, {7, 1}), HasSubstr("INGOT-U312"));
}

TEST_F(ConditionsOfAnEngine, SayWhatAsksForThem) {
  SizeCheck bounds = guard("S < B"), assertion = guard("S != 5");
  bounds.kind = CheckKind::kBounds;
  bounds.message = "slice";
  assertion.kind = CheckKind::kAssertion;
  assertion.message = "no five";
  Context& context = context_with({assertion, bounds});
  EXPECT_THAT(refusal(context, {4, 4}), HasSubstr("'slice' needs x.shape[1] < x.shape[0]"));
  EXPECT_THAT(refusal(context, {4, 5}), HasSubstr("the program asserts x.shape[1] != 5 (no five)"));
  EXPECT_THROW(context.output_shapes(std::vector<Argument>{argument(filled({4, 5}, 0))}), UserError);
}

}  // namespace
}  // namespace ingot::core
