// SPDX-License-Identifier: Apache-2.0
#include "engine/program_slice.h"

#include <gmock/gmock.h>

#include "tests/engine/programs.h"

namespace ingot::core {
namespace {

using namespace testing;
using ::testing::ElementsAre;

std::vector<std::string> names_of(const std::vector<Step>& steps) {
  std::vector<std::string> names;
  for (const Step& step : steps) names.push_back(step.name);
  return names;
}

// a -> packed a; a, b -> sum (by way of the arena); b -> two results of one step
Program init_of_two_weights() {
  Program program;
  program.name = "init";
  const BufferId a = add_buffer(program, "a", f32({2}), WeightStorage{0});
  const BufferId b = add_buffer(program, "b", f32({2}), WeightStorage{1});
  const BufferId packed = add_output(program, "packed", f32({2}));
  const BufferId scratch = add_buffer(program, "scratch", f32({2}), ArenaStorage{});
  const BufferId sum = add_output(program, "sum", f32({2}));
  const BufferId low = add_output(program, "low", f32({2}));
  const BufferId high = add_output(program, "high", f32({2}));
  program.steps = {kernel_step("pack", {a}, {packed}), kernel_step("double", {a}, {scratch}),
                   kernel_step("add", {scratch, b}, {sum}), kernel_step("split", {b}, {low, high})};
  return program;
}

TEST(ProgramSlice, FindsWhatDependsOnAWeight) {
  const Program program = init_of_two_weights();
  EXPECT_THAT(outputs_that_read(program, {0}), ElementsAre(0, 1));
  EXPECT_THAT(outputs_that_read(program, {1}), ElementsAre(1, 2, 3));
  EXPECT_THAT(outputs_that_read(program, {}), ElementsAre());
}

TEST(ProgramSlice, KeepsTheStepsThatOutputsNeed) {
  const Program program = init_of_two_weights();
  const ProgramSlice packed = slice_program(program, {{0}});
  EXPECT_THAT(packed.outputs, ElementsAre(0));
  EXPECT_THAT(names_of(packed.program.steps), ElementsAre("pack"));
  EXPECT_EQ(packed.program.buffers.size(), 2u);
  const ProgramSlice sum = slice_program(program, {{1}});
  EXPECT_THAT(names_of(sum.program.steps), ElementsAre("double", "add"));
  EXPECT_EQ(sum.program.buffers[sum.program.outputs[0].buffer].as<OutputStorage>()->index, 0u);
}

TEST(ProgramSlice, TakesAllOutputsOfAStep) {
  const ProgramSlice slice = slice_program(init_of_two_weights(), {{3}});
  EXPECT_THAT(slice.outputs, ElementsAre(2, 3));
  EXPECT_THAT(names_of(slice.program.steps), ElementsAre("split"));
}

TEST(ProgramSlice, StepsWithoutTheirNextDoNotDoIt) {
  Program program{.name = "main"};
  const BufferId x = add_input(program, "x", f32({2})), sum = add_output(program, "sum", f32({2}));
  const BufferId y = add_output(program, "y", f32({2}));
  program.steps = {kernel_step("all_reduce", {x}, {sum}), kernel_step("next", {sum}, {y})};
  program.steps[0].action = RoutineStep{"all_reduce", {}, 0, 0};
  const auto with_next = [&](uint32_t output) {
    return slice_program(program, {{output}}).program.steps[0].as<RoutineStep>()->with_next;
  };
  EXPECT_EQ(with_next(0), kNoId);
  EXPECT_EQ(with_next(1), 0u);
}

TEST(ProgramSlice, EverySliceIsAValidProgram) {
  const Program program = init_of_two_weights();
  for (uint32_t chosen = 0; chosen < 16; ++chosen) {
    std::vector<uint32_t> outputs;
    for (uint32_t k = 0; k < 4; ++k) {
      if ((chosen >> k & 1) != 0) outputs.push_back(k);
    }
    const ProgramSlice slice = slice_program(program, outputs);
    EXPECT_NO_THROW(validate(slice.program, 1, 2)) << chosen;
    EXPECT_GE(slice.outputs.size(), outputs.size());
  }
}

}  // namespace
}  // namespace ingot::core
