// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/importers/aten/programs.h"

namespace ingot::core::aten::test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

std::string only_reason(const ProgramWriter& writer) {
  const std::vector<Refusal> refusals = find_unsupported(writer.program.graph);
  EXPECT_EQ(refusals.size(), 1u);
  return refusals.empty() ? "" : refusals[0].reason;
}

TEST(Unsupported, KnowsWhichOverloadsHaveARow) {
  EXPECT_TRUE(has_importer("aten.linear.default"));
  EXPECT_FALSE(has_importer("aten.linear.out"));
  EXPECT_FALSE(has_importer("aten.add_.Tensor"));
}

TEST(Unsupported, TakesInPlaceCallsOfWhatHasARow) {
  ProgramWriter writer;
  writer.call("aten.add_.Tensor", {{writer.input("x", {2})}, {int64_t{1}}}, {2});
  EXPECT_THAT(find_unsupported(writer.program.graph), IsEmpty());
}

TEST(Unsupported, TellsNodeTargetAndLine) {
  ProgramWriter writer;
  const ValueId x = writer.input("x", {2, 2});
  writer.call("aten.relu.default", {{x}}, {2, 2});
  writer.call("lacking.negated.default", {{x}}, {2});
  const std::vector<Refusal> refusals = find_unsupported(writer.program.graph);
  ASSERT_EQ(refusals.size(), 1u);
  EXPECT_EQ(refusals[0].node, 1u);
  EXPECT_EQ(refusals[0].target, "lacking.negated.default");
  EXPECT_EQ(refusals[0].source, "model.py:2 in forward");
}

std::vector<std::string> reasons_of(const ProgramWriter& writer) {
  std::vector<std::string> reasons(writer.program.graph.nodes.size());
  for (const Refusal& refusal : find_unsupported(writer.program.graph))
    reasons[refusal.node] = refusal.reason;
  return reasons;
}

TEST(Unsupported, TakesComplexValuesInsideOfAnEngine) {
  ProgramWriter writer;
  const ValueId z =
      writer.call("aten.view_as_complex.default", {{writer.input("x", {3, 2})}}, {3}, DType::kC64);
  const ValueId squared = writer.call("aten.mul.Tensor", {{z}, {z}}, {3}, DType::kC64);
  writer.output(writer.call("aten.abs.default", {{squared}}, {3}));
  EXPECT_THAT(find_unsupported(writer.program.graph), IsEmpty());
}

TEST(Unsupported, TakesComplexValuesThatEnterAndLeave) {
  ProgramWriter writer;
  const ValueId z =
      writer.call("aten.add.Tensor", {{writer.input("z", {2}, DType::kC64)}, {int64_t{1}}}, {2}, DType::kC64);
  writer.call("aten.special_i0.default", {{z}}, {2}, DType::kC64);
  writer.output(writer.call("aten.neg.default", {{z}}, {2}, DType::kC64));
  EXPECT_THAT(reasons_of(writer), ElementsAre("", "complex numbers", ""));
}

TEST(Unsupported, TakesComplexNumbersAsArguments) {
  ProgramWriter writer;
  const ValueId x = writer.input("x", {2});
  writer.output(writer.call("aten.mul.Tensor", {{x}, {std::complex(0.0, 2.0)}}, {2}, DType::kC64));
  EXPECT_THAT(find_unsupported(writer.program.graph), IsEmpty());
}

TEST(Unsupported, RefusesSizesThatNoInputTells) {
  ProgramWriter writer;
  writer.call("aten.relu.default", {{writer.input("x", {4})}}, {Dim::symbol("u0")});
  EXPECT_THAT(only_reason(writer), HasSubstr("depends on data"));
}

}  // namespace
}  // namespace ingot::core::aten::test
