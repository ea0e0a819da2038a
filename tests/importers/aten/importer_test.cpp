// SPDX-License-Identifier: Apache-2.0
// Writes replayed as pure nodes: through views, through several names, into arguments.
#include "importers/aten/importer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/error.h"
#include "tests/importers/aten/programs.h"

namespace ingot::core::aten::test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

TEST(Importer, NamesTheFunctionalTwin) {
  EXPECT_EQ(functional_target("aten.add_.Tensor"), "aten.add.Tensor");
  EXPECT_EQ(functional_target("aten.relu.default"), "aten.relu.default");
}

TEST(Importer, WritesThroughAViewOfAView) {
  ProgramWriter writer;
  const ValueId x = writer.input("x", {2, 2});
  const ValueId copy = writer.call("aten.clone.default", {{x}}, {2, 2});
  const ValueId turned = writer.call("aten.t.default", {{copy}}, {2, 2});
  const ValueId row = writer.call("aten.select.int", {{turned}, {int64_t{0}}, {int64_t{1}}}, {2});
  writer.call("aten.mul_.Tensor", {{row}, {10.0}}, {2});
  writer.output(copy);
  writer.output(turned);
  writer.output(row);
  EXPECT_THAT(results(writer.program, {{1, 2, 3, 4}}),
              ElementsAre(ElementsAre(1, 20, 3, 40), ElementsAre(1, 3, 20, 40), ElementsAre(20, 40)));
}

TEST(Importer, MakesOtherViewsAgainAfterAWrite) {
  ProgramWriter writer;
  const ValueId x = writer.input("x", {4});
  const ValueId copy = writer.call("aten.clone.default", {{x}}, {4});
  const ValueId low =
      writer.call("aten.slice.Tensor", {{copy}, {int64_t{0}}, {int64_t{0}}, {int64_t{3}}}, {3});
  const ValueId high =
      writer.call("aten.slice.Tensor", {{copy}, {int64_t{0}}, {int64_t{1}}, {int64_t{4}}}, {3});
  const ValueId before = writer.call("aten.neg.default", {{high}}, {3});
  writer.call("aten.add_.Tensor", {{low}, {int64_t{100}}}, {3});
  writer.output(high);
  writer.output(before);
  EXPECT_THAT(results(writer.program, {{1, 2, 3, 4}}),
              ElementsAre(ElementsAre(102, 103, 4), ElementsAre(-2, -3, -4)));
}

TEST(Importer, TellsCopiesFromViews) {
  ProgramWriter writer;
  const ValueId x = writer.input("x", {2});
  const ValueId same = writer.call("aten.to.dtype", {{x}, {DType::kF32}}, {2});
  const ValueId other = writer.call("aten.to.dtype", {{x}, {DType::kF64}}, {2}, DType::kF64);
  writer.call("aten.add_.Tensor", {{x}, {int64_t{1}}}, {2});
  writer.output(same);
  writer.output(other);
  EXPECT_THAT(results(writer.program, {{1, 2}}).at(0), ElementsAre(2, 3));
  EXPECT_THAT(results(writer.program, {{1, 2}}).at(1), ElementsAre(1, 2));
}

TEST(Importer, KeepsTheDtypeOfWhatIsWritten) {
  ProgramWriter writer;
  const ValueId x = writer.input("x", {2}, DType::kF32), y = writer.input("y", {}, DType::kF64);
  const ValueId copy = writer.call("aten.clone.default", {{x}}, {2});
  writer.call("aten.copy_.default", {{copy}, {y}}, {2});
  writer.output(copy);
  EXPECT_THAT(results(writer.program, {{1, 2}, {7}}), ElementsAre(ElementsAre(7, 7)));
}

TEST(Importer, MakesStateOfWhatIsWritten) {
  ProgramWriter writer;
  const ValueId cache = writer.input("cache", {3}), x = writer.input("x", {1});
  const ValueId place =
      writer.call("aten.slice.Tensor", {{cache}, {int64_t{0}}, {int64_t{1}}, {int64_t{2}}}, {1});
  writer.call("aten.copy_.default", {{place}, {x}}, {1});
  writer.output(writer.call("aten.sum.default", {{cache}}, {}));
  const Imported imported = import_program(writer.program);
  ASSERT_EQ(imported.states.size(), 1u);
  EXPECT_EQ(imported.states[0].mutated_input, 0);
  EXPECT_THAT(results(writer.program, {{1, 2, 3}, {9}}), ElementsAre(ElementsAre(13), ElementsAre(1, 9, 3)));
}

TEST(Importer, TakesMutationsOfFunctionalPrograms) {
  ProgramWriter writer;
  const ValueId count = writer.input("count", {1});
  const ValueId next = writer.call("aten.add.Tensor", {{count}, {int64_t{1}}}, {1});
  writer.mutation(next, "count");
  writer.output(next);
  EXPECT_THAT(results(writer.program, {{4}}), ElementsAre(ElementsAre(5), ElementsAre(5)));
}

void expect_refused(const Program& program, const char* code, const char* node, const char* message) {
  try {
    import_program(program);
    FAIL() << message;
  } catch (const Error& error) {
    EXPECT_EQ(error.details().code, code);
    EXPECT_EQ(error.details().node, node);
    EXPECT_THAT(error.details().message, HasSubstr(message));
  }
}

TEST(Importer, RefusesResultsOtherThanTheProgramRecorded) {
  const auto sum = [](Shape shape, DType dtype) {
    ProgramWriter writer;
    const ValueId x = writer.input("x", {2, Dim::symbol("S")});
    writer.program.graph.symbols["S"].range = {2, 9};
    writer.output(writer.call("aten.sum.dim_IntList", {{x}, list({0})}, std::move(shape), dtype));
    return writer.program;
  };
  const Dim size = Dim::symbol("S");
  expect_refused(sum({size}, DType::kF64), "INGOT-N523", "node0", "the program recorded f64[S]");
  expect_refused(sum({1, size}, DType::kF32), "INGOT-N523", "node0", "Ingot computes f32[S]");
  expect_refused(sum({2 * floor_divide(size, 2)}, DType::kF32), "INGOT-N523", "node0", "recorded");
  EXPECT_EQ(import_program(sum({size}, DType::kF32)).graph.outputs.size(), 1u);
  const Dim halves = floor_divide(size, 2) + floor_divide(size + 1, 2);  // the same by another formula
  EXPECT_EQ(import_program(sum({halves}, DType::kF32)).graph.outputs.size(), 1u);
}

// Torch 2.11 does, for what is asked for and what is not.
TEST(Importer, TakesPlacesThatAreRecordedAsValues) {
  const Argument yes{true};
  const std::vector<std::pair<std::string, std::vector<Argument>>> calls = {
      {"aten._unique2.default", {yes, yes, yes}},
      {"aten.unique_consecutive.default", {yes, yes}},
      {"aten.unique_dim.default", {{int64_t{0}}, yes, yes, yes}},
      {"aten.unique_dim_consecutive.default", {{int64_t{0}}, yes, yes}}};
  for (const auto& [target, flags] : calls) {
    ProgramWriter writer;
    std::vector<Argument> arguments = {{writer.input("x", {4})}};
    arguments.insert(arguments.end(), flags.begin(), flags.end());
    const Dim found = Dim::symbol("u0");
    for (const ValueId id : writer.call_for_several(target, arguments, {{found}, {4}, {found}}))
      writer.output(id);
    EXPECT_THAT(results(writer.program, {{2, 2, 3, 5}}),
                ElementsAre(ElementsAre(2, 3, 5), ElementsAre(0, 0, 1, 2), ElementsAre(2, 1, 1)))
        << target;
  }
}

TEST(Importer, RefusesWritesThroughWhatIsNoPlainView) {
  ProgramWriter writer;
  const ValueId x = writer.input("x", {3});
  const ValueId copy = writer.call("aten.clone.default", {{x}}, {3});
  const ValueId windows =
      writer.call("aten.unfold.default", {{copy}, {int64_t{0}}, {int64_t{2}}, {int64_t{1}}}, {2, 2});
  writer.call("aten.zero_.default", {{windows}}, {2, 2});
  writer.output(copy);
  expect_refused(writer.program, "INGOT-N520", "node1", "a write through take");
}

TEST(Importer, RefusesToMoveATensorInPlace) {
  ProgramWriter writer;
  const ValueId x = writer.input("x", {2, 2});
  const ValueId copy = writer.call("aten.clone.default", {{x}}, {2, 2});
  writer.output(writer.call("aten.t_.default", {{copy}}, {2, 2}));
  expect_refused(writer.program, "INGOT-N520", "node1", "changes the memory layout of a tensor");
}

TEST(Importer, RefusesResultsThatItDoesNotCompute) {
  ProgramWriter writer;
  const ValueId x = writer.input("x", {2, 3});
  const auto norm =
      writer.call_for_several("aten._native_batch_norm_legit.no_stats",
                              {{x}, {None{}}, {None{}}, {true}, {0.1}, {1e-5}}, {{2, 3}, {3}, {3}});
  writer.output(norm[1]);
  expect_refused(writer.program, "INGOT-N520", "node0", "its result node0 is not computed");
}

TEST(Importer, RefusesOperatorsWithoutARow) {
  ProgramWriter writer;
  writer.output(writer.call("lacking.negated.default", {{writer.input("x", {2, 2})}}, {2}));
  expect_refused(writer.program, "INGOT-N520", "node0", "Ingot has no such operator");
}

TEST(Importer, RefusesMutationsOfWhatIsNoInput) {
  ProgramWriter writer;
  writer.mutation(writer.input("x", {1}), "y");
  expect_refused(writer.program, "INGOT-U523", "", "mutates \"y\"");
}

// Files may list ranges of symbols that no tensor has.
TEST(Importer, DropsSymbolsThatNoInputHas) {
  ProgramWriter writer;
  writer.program.graph.symbols = {{"n", {.range = {1, 8}}}, {"other", {.range = {1, 8}}}};
  writer.output(
      writer.call("aten.relu.default", {{writer.input("x", {Dim::symbol("n")})}}, {Dim::symbol("n")}));
  const auto imported = import_program(writer.program);
  ASSERT_EQ(imported.graph.symbols.size(), 1u);
  EXPECT_TRUE(imported.graph.symbols.contains("n"));
}

}  // namespace
}  // namespace ingot::core::aten::test
