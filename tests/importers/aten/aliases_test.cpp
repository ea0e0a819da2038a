// SPDX-License-Identifier: Apache-2.0
#include "importers/aten/schema/aliases.h"
#include "importers/aten/schema/values_needed.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/importers/aten/programs.h"

namespace ingot::core::aten::test {
namespace {

TEST(Aliases, FollowViewsToTheirRoot) {
  ProgramWriter writer;
  const ValueId x = writer.input("x", {2, 2});
  const ValueId turned = writer.call("aten.t.default", {{x}}, {2, 2});
  const ValueId row = writer.call("aten.select.int", {{turned}, {int64_t{0}}, {int64_t{0}}}, {2});
  const ValueId fresh = writer.call("aten.relu.default", {{row}}, {2});
  const Aliases aliases = find_aliases(writer.program.graph);
  EXPECT_EQ(aliases.root(row), x);
  EXPECT_EQ(aliases.root(fresh), fresh);
  EXPECT_FALSE(aliases.is_view(x));
  EXPECT_TRUE(aliases.written.empty());
}

TEST(Aliases, NameWhatACallWrites) {
  ProgramWriter writer;
  const ValueId x = writer.input("x", {2});
  const ValueId view = writer.call("aten.view.default", {{x}, list({2})}, {2});
  const ValueId result = writer.call("aten.relu_.default", {{view}}, {2});
  const Aliases aliases = find_aliases(writer.program.graph);
  EXPECT_EQ(aliases.target[0], std::nullopt);
  EXPECT_EQ(aliases.target[1], view);
  EXPECT_EQ(aliases.root(result), x);
  EXPECT_TRUE(aliases.written.contains(x));
}

// Some write without saying so by their names.
TEST(Aliases, CallsThatWriteNeedTheirOperands) {
  ProgramWriter writer;
  const ValueId x = writer.input("x", {2, 3});
  const ValueId mean = writer.input("mean", {3}), variance = writer.input("variance", {3});
  const ValueId shown = writer.call("aten.view.default", {{mean}, list({3})}, {3});
  writer.call_for_several("aten._native_batch_norm_legit.default",
                          {{x}, {None{}}, {None{}}, {shown}, {variance}, {true}, {0.1}, {1e-5}},
                          {{2, 3}, {3}, {3}});
  const ValueId unread = writer.input("unread", {2});
  writer.call("aten.relu.default", {{unread}}, {2});
  const Graph& graph = writer.program.graph;
  EXPECT_EQ(values_needed(graph, find_aliases(graph)), (std::set<ValueId>{x, mean, variance, shown}));
}

TEST(Aliases, EveryPartOfASplitIsAView) {
  ProgramWriter writer;
  const ValueId x = writer.input("x", {4});
  const auto parts = writer.call_for_several("aten.split.Tensor", {{x}, {int64_t{2}}}, {{2}, {2}});
  const Aliases aliases = find_aliases(writer.program.graph);
  for (const ValueId part : parts) EXPECT_EQ(aliases.root(part), x);
}

TEST(Aliases, ReshapesOfDenseTensorsAreViewsAndOthersCopies) {
  ProgramWriter writer;
  const ValueId x = writer.input("x", {2, 2});
  const ValueId dense = writer.call("aten.reshape.default", {{x}, list({4})}, {4});
  const ValueId turned = writer.call("aten.t.default", {{x}}, {2, 2});
  writer.program.graph.values[turned].tensor.strides = {1, 2};
  const ValueId copied = writer.call("aten.reshape.default", {{turned}, list({4})}, {4});
  const Aliases aliases = find_aliases(writer.program.graph);
  EXPECT_TRUE(aliases.is_view(dense));
  EXPECT_FALSE(aliases.is_view(copied));
}

TEST(Aliases, WrittenBuffersOfOneMemoryAreOne) {
  ProgramWriter writer;
  const ValueId first = writer.parameter("first", {1, 2});
  const ValueId second = writer.parameter("second", {1, 2});
  auto& inputs = writer.program.graph.inputs;
  inputs[1].data = inputs[0].data;
  EXPECT_FALSE(find_aliases(writer.program.graph).is_view(second));
  writer.call("aten.add_.Tensor", {{second}, {int64_t{1}}}, {2});
  const Aliases aliases = find_aliases(writer.program.graph);
  EXPECT_EQ(aliases.root(second), first);
  EXPECT_TRUE(aliases.written.contains(first));
}

}  // namespace
}  // namespace ingot::core::aten::test
