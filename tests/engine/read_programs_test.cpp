// SPDX-License-Identifier: Apache-2.0
// What a file can say and a program cannot.
#include <gmock/gmock.h>

#include "engine/engine_generated.h"
#include "engine/program_numbers.h"
#include "engine/sections.h"
#include "support/error.h"

namespace ingot::core {
namespace {

using ::testing::HasSubstr;

struct RawStep {
  uint8_t kind;
  uint8_t control = 0;
  std::vector<uint32_t> sizes, programs;
  std::string backend, routine;
  uint32_t with_next = kNoId;
};

RawStep step_of(StepNumber kind) {
  return {.kind = static_cast<uint8_t>(kind), .sizes = {}, .programs = {}, .backend = {}, .routine = {}};
}

// The section of an engine whose main program has this one step; dim 0 is the constant 0.
std::vector<std::byte> section_with(const RawStep& raw) {
  flatbuffers::FlatBufferBuilder builder;
  const auto backend = builder.CreateString(raw.backend), routine = builder.CreateString(raw.routine);
  const auto sizes = builder.CreateVector(raw.sizes), programs = builder.CreateVector(raw.programs);
  file::StepBuilder step(builder);
  step.add_kind(raw.kind);
  step.add_control(raw.control);
  step.add_backend(backend);
  step.add_routine(routine);
  step.add_image_with_next(raw.with_next);
  step.add_sizes(sizes);
  step.add_programs(programs);
  const std::vector steps = {step.Finish()};
  const auto main =
      file::CreateProgramDirect(builder, "main", nullptr, nullptr, nullptr, nullptr, nullptr, &steps);
  const auto init = file::CreateProgram(builder);
  const std::vector<uint32_t> ends = {1};
  const std::vector<uint8_t> operations = {0};
  const std::vector<int64_t> numbers = {0};
  builder.Finish(file::CreateProgramsDirect(builder, nullptr, &ends, &operations, &numbers, init, main));
  const auto* first = reinterpret_cast<const std::byte*>(builder.GetBufferPointer());
  return {first, first + builder.GetSize()};
}

std::string refusal(const RawStep& step) {
  EngineData engine;
  try {
    read_programs(section_with(step), engine);
  } catch (const UserError& error) {
    return error.details().message;
  }
  return "";
}

// A copy would move as many bytes as the launch has in its first size.
TEST(ReadPrograms, RefusesFieldsOfOtherKinds) {
  for (const StepNumber kind : {StepNumber::kKernel, StepNumber::kRoutine, StepNumber::kCopy}) {
    EXPECT_EQ(refusal(step_of(kind)), "");
    RawStep with_launch = step_of(kind), with_backend = step_of(kind), with_routine = step_of(kind),
            with_programs = step_of(kind), with_next = step_of(kind);
    with_launch.sizes = {0};
    with_backend.backend = "cpu";
    with_routine.routine = "sort";
    with_programs.programs = {0};
    with_next.with_next = 0;
    const bool is_kernel = kind == StepNumber::kKernel;
    EXPECT_THAT(refusal(with_launch), HasSubstr(is_kernel ? "" : "has a launch but runs no kernel"));
    EXPECT_THAT(refusal(with_backend), HasSubstr(is_kernel ? "" : "has a launch but runs no kernel"));
    EXPECT_THAT(refusal(with_routine),
                HasSubstr(kind == StepNumber::kRoutine ? "" : "names a routine but does not run it"));
    EXPECT_THAT(refusal(with_next),
                HasSubstr(kind == StepNumber::kRoutine ? "" : "does the next one but is not a routine"));
    EXPECT_THAT(refusal(with_programs), HasSubstr("lists nested programs but does not run them"));
  }
}

TEST(ReadPrograms, RefusesOtherNumbersOfNestedPrograms) {
  for (const ControlNumber control : {ControlNumber::kBranch, ControlNumber::kLoop}) {
    for (uint32_t count = 0; count < 4; ++count) {
      RawStep step = step_of(StepNumber::kProgram);
      step.control = static_cast<uint8_t>(control);
      step.programs.resize(count);
      EXPECT_EQ(refusal(step) == "", count == (control == ControlNumber::kBranch ? 2 : 1)) << count;
    }
  }
}

TEST(ReadPrograms, RefusesUnknownKinds) {
  RawStep step = step_of(StepNumber::kProgram);
  step.kind = 4;
  EXPECT_THAT(refusal(step), HasSubstr("unknown kind"));
}

}  // namespace
}  // namespace ingot::core
