// SPDX-License-Identifier: Apache-2.0
// Buffers that steps write more than once, or in parts, as values that one node makes each.
#include "exporters/onnx/export_engine.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fmt/ranges.h>

#include "exporters/onnx/wire_message.h"
#include "tests/engine/programs.h"

namespace ingot::core::exported {
namespace {

using ::testing::ElementsAre;
using namespace ingot::core::testing;

std::vector<std::string> lines_of(const OnnxGraph& graph) {
  std::vector<std::string> lines;
  for (const OnnxNode& node : graph.nodes)
    lines.push_back(
        fmt::format("{} = {}({})", fmt::join(node.outputs, ", "), node.op, fmt::join(node.inputs, ", ")));
  return lines;
}

OnnxModel exported(Program program) {
  EngineData engine;
  engine.name = "test";
  engine.images.push_back({.kernel = "kernel", .target = "null", .code = {std::byte{1}}});
  engine.main = std::move(program);
  engine.init.name = "init";
  return export_engine(engine);
}

TEST(ExportEngine, EachStepIsANode) {
  const OnnxModel model = exported(chain());
  EXPECT_THAT(lines_of(model.graph), ElementsAre("a = copy(x)", "b = copy(a)", "y = copy(b)"));
  EXPECT_EQ(model.graph.outputs[0].name, "y");
  EXPECT_EQ(to_string(model.graph.outputs[0].type), "f32[B,S]");
  EXPECT_THAT(model.graph.metadata, ElementsAre(std::pair("symbol B", "1..16, typical 4"),
                                                std::pair("symbol S", "1..256, typical 128")));
}

TEST(ExportEngine, SecondWriteOfABufferIsAnotherValue) {
  Program program{.name = "main"};
  const BufferId x = add_input(program, "x", f32({4})),
                 a = add_buffer(program, "a", f32({4}), ArenaStorage{});
  const BufferId y = add_output(program, "y", f32({4}));
  program.steps = {copy_step(x, a), kernel_step("again", {a, x}, {a}), copy_step(a, y)};
  EXPECT_THAT(lines_of(exported(program).graph),
              ElementsAre("a = copy(x)", "a#2 = again(a, x)", "y = copy(a#2)"));
}

TEST(ExportEngine, PartsOfABufferAreJoinedWhenItIsRead) {
  Program program{.name = "main"};
  const BufferId x = add_input(program, "x", f32({4}));
  const BufferId whole = add_buffer(program, "whole", f32({8}), ArenaStorage{});
  const BufferId low = add_buffer(program, "low", f32({4}), AliasStorage{whole, 0});
  const BufferId high = add_buffer(program, "high", f32({4}), AliasStorage{whole, 16});
  const BufferId y = add_output(program, "y", f32({8})), z = add_output(program, "z", f32({4}));
  program.steps = {copy_step(x, low), copy_step(x, high), kernel_step("both", {whole}, {y}),
                   kernel_step("part", {low}, {z}), kernel_step("same", {low}, {z})};
  EXPECT_THAT(lines_of(exported(program).graph),
              ElementsAre("low = copy(x)", "high = copy(x)", "whole = parts(low, high)", "y = both(whole)",
                          "low#2 = view(whole)", "z = part(low#2)", "z#2 = same(low#2)"));
}

TEST(ExportEngine, PartThatWasJustWrittenIsReadAsItIs) {
  Program program{.name = "main"};
  const BufferId x = add_input(program, "x", f32({4}));
  const BufferId whole = add_buffer(program, "whole", f32({8}), ArenaStorage{});
  const BufferId low = add_buffer(program, "low", f32({4}), AliasStorage{whole, 0});
  const BufferId y = add_output(program, "y", f32({4}));
  program.steps = {copy_step(x, low), copy_step(low, y)};
  EXPECT_THAT(lines_of(exported(program).graph), ElementsAre("low = copy(x)", "y = copy(low)"));
}

TEST(ExportEngine, StateThatIsWrittenIsUpdated) {
  Program program{.name = "main"};
  const BufferId x = add_input(program, "x", f32({4}));
  const BufferId state = add_buffer(program, "cache", f32({4}), StateStorage{0});
  program.states.push_back({"cache", f32({4}), state});
  const BufferId y = add_output(program, "y", f32({4}));
  program.steps = {kernel_step("step", {x, state}, {state}), copy_step(state, y)};
  EXPECT_THAT(lines_of(exported(program).graph),
              ElementsAre("cache = state()", "cache#2 = step(x, cache)", "y = copy(cache#2)",
                          " = update(cache, cache#2)"));
}

TEST(WireMessage, WritesWhatTheFormatSays) {
  WireMessage inner, message;
  inner.integer(1, 150);
  message.message(3, inner);
  message.integer(2, -1);
  message.text(16, "é");
  message.text(1, "\xff ");
  EXPECT_EQ(message.content(), std::string("\x1a\x03\x08\x96\x01", 5) +
                                   "\x10\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01" + "\x82\x01\x02\xc3\xa9" +
                                   "\x0a\x02? ");
}

}  // namespace
}  // namespace ingot::core::exported
