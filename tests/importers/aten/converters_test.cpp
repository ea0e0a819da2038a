// SPDX-License-Identifier: Apache-2.0
// What calls become: defaults, symbolic sizes, lists, optional tensors, numbers that promote.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "support/error.h"
#include "tests/importers/aten/programs.h"

namespace ingot::core::aten::test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

// One call on one input.
std::vector<double> applied(const std::string& target, std::vector<Argument> more, const Shape& from,
                            const std::vector<double>& numbers, const Shape& to, DType dtype = DType::kF32) {
  ProgramWriter writer;
  more.insert(more.begin(), Argument{writer.input("x", from)});
  writer.output(writer.call(target, std::move(more), to, dtype));
  return results(writer.program, {numbers}).at(0);
}

TEST(Converters, TakeDefaultsFromTheSchema) {
  EXPECT_THAT(applied("aten.leaky_relu.default", {}, {2}, {-1, 2}, {2}), ElementsAre(-0.01f, 2));
  EXPECT_THAT(applied("aten.triu.default", {}, {2, 2}, {1, 2, 3, 4}, {2, 2}), ElementsAre(1, 2, 0, 4));
  EXPECT_THAT(applied("aten.flatten.using_ints", {}, {1, 2}, {1, 2}, {2}), ElementsAre(1, 2));
}

TEST(Converters, ReduceTensorsWithoutDims) {
  for (const int64_t dim : {0, -1})
    EXPECT_THAT(applied("aten.sum.dim_IntList", {{ArgumentList{{dim}}}}, {}, {3}, {}), ElementsAre(3));
}

TEST(Converters, TakeAlongFromTheEnd) {
  ProgramWriter writer;
  const ValueId x = writer.input("x", {3}), index = writer.input("index", {2}, DType::kI64);
  writer.output(writer.call("aten.take_along_dim.default", {{x}, {index}, {int64_t{0}}}, {2}));
  EXPECT_THAT(results(writer.program, {{1, 2, 3}, {-1, 0}}).at(0), ElementsAre(3, 1));
}

TEST(Converters, MeasureAreasUnderIntegers) {
  ProgramWriter writer;
  writer.output(writer.call("aten.trapezoid.dx", {{writer.input("y", {3}, DType::kI64)}}, {}));
  EXPECT_THAT(results(writer.program, {{1, 2, 4}}).at(0), ElementsAre(4.5));
}

TEST(Converters, BroadcastBeforeNorms) {
  ProgramWriter writer;
  const ValueId x = writer.input("x", {2, 2}), y = writer.input("y", {1, 2});
  writer.output(writer.call("aten.cosine_similarity.default", {{x}, {y}, {int64_t{0}}}, {2}));
  EXPECT_THAT(results(writer.program, {{3, 1, 3, 0}, {2, 1}}).at(0),
              ElementsAre(testing::DoubleNear(1, 1e-6), testing::DoubleNear(std::sqrt(0.5), 1e-6)));
}

TEST(Converters, BroadcastTheBiasesOfLinearLayers) {
  ProgramWriter writer;
  const ValueId x = writer.input("x", {2, 1, 2}), weight = writer.input("weight", {2, 2});
  const auto add_layer = [&](const std::string& name, const Shape& bias) {
    writer.output(writer.call("aten.linear.default", {{x}, {weight}, {writer.input(name, bias)}}, {2, 1, 2}));
  };
  add_layer("layer", {2});
  add_layer("one", {1});
  add_layer("scalar", {});
  add_layer("images", {2, 1, 1});
  const auto found = results(writer.program, {{1, 2, 3, 4}, {1, 0, 0, 1}, {10, 20}, {10}, {10}, {10, 20}});
  EXPECT_THAT(found.at(0), ElementsAre(11, 22, 13, 24));
  EXPECT_THAT(found.at(1), ElementsAre(11, 12, 13, 14));
  EXPECT_THAT(found.at(2), ElementsAre(11, 12, 13, 14));
  EXPECT_THAT(found.at(3), ElementsAre(11, 12, 23, 24));
}

TEST(Converters, GiveNormsOfNothing) {
  EXPECT_THAT(applied("aten.linalg_norm.default", {{1.0}}, {2, 0}, {}, {}), ElementsAre(0));
}

// Files that a GPU exported have it by the names of its arguments, as it is not among the schemas. Without
// statistics it takes those of the batch.
TEST(Converters, NormalizeAsCudnnRecorded) {
  constexpr const char* kNames[] = {
      "input",  "weight", "bias", "running_mean", "running_var", "training", "exponential_average_factor",
      "epsilon"};
  for (const bool training : {false, true}) {
    ProgramWriter writer;
    std::vector<Argument> arguments{{writer.input("x", {1, 2, 2})}};
    for (const char* name : {"weight", "bias", "mean", "variance"})
      arguments.push_back(training ? Argument{None{}} : Argument{writer.input(name, {2})});
    arguments.insert(arguments.end(), {{training}, {0.1}, {0.0}});
    writer.output(
        writer.call_for_several("aten.cudnn_batch_norm.default", arguments, {{1, 2, 2}, {0}, {0}, {0}})[0]);
    for (size_t i = 0; i < std::size(kNames); ++i)
      writer.program.graph.nodes[0].arguments[i].name = kNames[i];
    std::vector<std::vector<double>> numbers{{1, 3, 2, 6}};
    if (!training) numbers.insert(numbers.end(), {{2, 1}, {1, 0}, {1, 2}, {4, 1}});
    const std::vector<double> expected =
        training ? std::vector<double>{-1, 1, -1, 1} : std::vector<double>{1, 3, 0, 4};
    EXPECT_EQ(results(writer.program, numbers).at(0), expected) << training;
  }
}

// The value right of the middle of two voxels, and one outside of the volume.
TEST(Converters, SampleVolumes) {
  ProgramWriter writer;
  const ValueId x = writer.input("x", {1, 1, 1, 1, 2}), grid = writer.input("grid", {1, 1, 1, 2, 3});
  const Argument bilinear{int64_t{0}}, zeros{int64_t{0}};
  writer.output(
      writer.call("aten.grid_sampler_3d.default", {{x}, {grid}, bilinear, zeros, {true}}, {1, 1, 1, 1, 2}));
  EXPECT_THAT(results(writer.program, {{4, 8}, {0.5, 0, 0, 3, 0, 0}}).at(0), ElementsAre(7, 0));
}

TEST(Converters, CutBeforeGoingAround) {
  const Argument cuts{ArgumentList{{int64_t{-1}}, {int64_t{2}}}};
  EXPECT_THAT(applied("aten.pad.default", {cuts, {"circular"}}, {1, 1, 4}, {1, 2, 3, 4}, {1, 1, 5}),
              ElementsAre(2, 3, 4, 2, 3));
}

TEST(Converters, LeaveOptionalTensorsOut) {
  ProgramWriter writer;
  const ValueId x = writer.input("x", {1, 2}), weight = writer.input("w", {2, 2});
  writer.output(writer.call("aten.linear.default", {{x}, {weight}}, {1, 2}));
  writer.output(writer.call("aten.linear.default", {{x}, {weight}, {None{}}}, {1, 2}));
  writer.output(
      writer.call("aten.linear.default", {{x}, {weight}, {writer.parameter("b", {10, 20})}}, {1, 2}));
  EXPECT_THAT(results(writer.program, {{1, 2}, {1, 0, 3, 1}}),
              ElementsAre(ElementsAre(1, 5), ElementsAre(1, 5), ElementsAre(11, 25)));
}

TEST(Converters, PromoteAsTorchDoes) {
  ProgramWriter writer;
  const ValueId whole = writer.input("whole", {2}, DType::kI64),
                small = writer.input("small", {}, DType::kF64);
  writer.output(writer.call("aten.add.Tensor", {{whole}, {2.5}}, {2}));
  writer.output(writer.call("aten.mul.Tensor", {{whole}, {small}}, {2}, DType::kF64));
  const std::string text = imported_text(writer.program);
  EXPECT_THAT(text, HasSubstr("f32[2]"));
  EXPECT_THAT(results(writer.program, {{1, 2}, {0.5}}),
              ElementsAre(ElementsAre(3.5, 4.5), ElementsAre(0.5, 1)));
}

TEST(Converters, ReadSizesFromSymbols) {
  ProgramWriter writer;
  const Dim batch = Dim::symbol("B");
  writer.program.graph.symbols["B"] = {.range = {1, 8}};
  const ValueId x = writer.input("x", {batch, 2});
  const ValueId size = writer.integer("size", batch * 2);
  const Argument shape{ArgumentList{{size}, {int64_t{1}}}};
  writer.output(writer.call("aten.view.default", {{x}, shape}, {batch * 2, 1}));
  writer.output(writer.call("aten.slice.Tensor", {{x}, {int64_t{0}}, {int64_t{-1}}}, {1, 2}));
  EXPECT_THAT(results(writer.program, {{1, 2, 3, 4, 5, 6}}, {{"B", 3}}),
              ElementsAre(ElementsAre(1, 2, 3, 4, 5, 6), ElementsAre(5, 6)));
}

TEST(Converters, TakeListsOfTensors) {
  ProgramWriter writer;
  const ValueId x = writer.input("x", {1, 2}), y = writer.input("y", {1, 2}, DType::kI64);
  writer.output(writer.call("aten.cat.default", {values({x, y})}, {2, 2}));
  writer.output(writer.call("aten.cat.default", {values({x, y}), {int64_t{-1}}}, {1, 4}));
  EXPECT_THAT(results(writer.program, {{1.5, 2}, {3, 4}}),
              ElementsAre(ElementsAre(1.5, 2, 3, 4), ElementsAre(1.5, 2, 3, 4)));
}

TEST(Converters, GiveEachOfSeveralResults) {
  ProgramWriter writer;
  const ValueId x = writer.input("x", {5});
  for (const ValueId part :
       writer.call_for_several("aten.split.Tensor", {{x}, {int64_t{2}}}, {{2}, {2}, {1}}))
    writer.output(part);
  EXPECT_THAT(results(writer.program, {{1, 2, 3, 4, 5}}),
              ElementsAre(ElementsAre(1, 2), ElementsAre(3, 4), ElementsAre(5)));
}

TEST(Converters, IndexWithNoneBetweenTensors) {
  ProgramWriter writer;
  const ValueId x = writer.input("x", {2, 1, 2}), index = writer.input("i", {2}, DType::kI64);
  const Argument indices{ArgumentList{{index}, {None{}}, {index}}};
  writer.output(writer.call("aten.index.Tensor", {{x}, indices}, {2, 1}));
  EXPECT_THAT(results(writer.program, {{1, 2, 3, 4}, {0, -1}}), ElementsAre(ElementsAre(1, 4)));
}

TEST(Converters, AddWhereIndicesMeet) {
  ProgramWriter writer;
  const ValueId x = writer.input("x", {3}), index = writer.input("i", {3}, DType::kI64);
  const ValueId source = writer.input("s", {3});
  writer.output(writer.call("aten.index_put.default", {{x}, values({index}), {source}, {true}}, {3}));
  writer.output(writer.call("aten.scatter_reduce.two",
                            {{x}, {int64_t{0}}, {index}, {source}, {std::string("mean")}}, {3}));
  EXPECT_THAT(results(writer.program, {{10, 20, 30}, {0, 0, 2}, {1, 4, 6}}),
              ElementsAre(ElementsAre(15, 20, 36), ElementsAre(5, 20, 18)));
}

TEST(Converters, TakeMasksAsChoices) {
  ProgramWriter writer;
  const ValueId x = writer.input("x", {3, 2}), mask = writer.input("m", {3}, DType::kBool);
  const ValueId rows = writer.input("r", {2, 2}), row = writer.input("s", {2});
  writer.output(writer.call("aten.index_put.default", {{x}, values({mask}), {rows}}, {3, 2}));
  writer.output(writer.call("aten.index_put.default", {{x}, values({mask}), {row}}, {3, 2}));
  EXPECT_THAT(results(writer.program, {{1, 2, 3, 4, 5, 6}, {1, 0, 1}, {10, 20, 30, 40}, {7, 8}}),
              ElementsAre(ElementsAre(10, 20, 3, 4, 30, 40), ElementsAre(7, 8, 3, 4, 7, 8)));
}

TEST(Converters, FindPlacesInSortedSequences) {
  ProgramWriter writer;
  const ValueId values = writer.input("v", {3}), bounds = writer.input("b", {3});
  writer.output(writer.call("aten.bucketize.Tensor", {{values}, {bounds}}, {3}, DType::kI64));
  writer.output(
      writer.call("aten.searchsorted.Tensor", {{bounds}, {values}, {false}, {true}}, {3}, DType::kI64));
  writer.program.graph.nodes[1].arguments[2].name = "out_int32";
  writer.program.graph.nodes[1].arguments[3].name = "right";
  EXPECT_THAT(results(writer.program, {{0, 2, 9}, {1, 2, 3}}),
              ElementsAre(ElementsAre(0, 1, 3), ElementsAre(0, 2, 3)));
}

TEST(Converters, CutDiagonalsAndWindows) {
  EXPECT_THAT(applied("aten.diagonal.default", {{int64_t{1}}}, {2, 3}, {1, 2, 3, 4, 5, 6}, {2}),
              ElementsAre(2, 6));
  EXPECT_THAT(applied("aten.diagonal.default", {{int64_t{-1}}}, {2, 3}, {1, 2, 3, 4, 5, 6}, {1}),
              ElementsAre(4));
  EXPECT_THAT(
      applied("aten.unfold.default", {{int64_t{0}}, {int64_t{2}}, {int64_t{1}}}, {3}, {1, 2, 3}, {2, 2}),
      ElementsAre(1, 2, 2, 3));
}

TEST(Converters, SpellOutEllipsesAndTwins) {
  const auto product = [](const char* equation, const Shape& shape) {
    ProgramWriter writer;
    const ValueId x = writer.input("x", {2, 2});
    writer.output(writer.call("aten.einsum.default", {{std::string(equation)}, values({x, x})}, shape));
    return results(writer.program, {{1, 2, 3, 4}}).at(0);
  };
  EXPECT_THAT(product("...i,...i->...", {2}), ElementsAre(5, 25));
  EXPECT_THAT(product("ii,...i", {2}), ElementsAre(9, 19));
}

TEST(Converters, ReturnComplexResultsAsPairs) {
  ProgramWriter writer;
  const ValueId x = writer.input("x", {2});
  const ValueId turned = writer.call("aten.mul.Tensor", {{x}, {std::complex(1.0, 2.0)}}, {2}, DType::kC64);
  writer.output(turned);
  EXPECT_THAT(results(writer.program, {{3, 4}}), ElementsAre(ElementsAre(3, 6, 4, 8)));
  const Imported imported = import_program(writer.program);
  EXPECT_THAT(imported.complex_outputs, ElementsAre(0));
  EXPECT_THAT(imported.complex_inputs, testing::IsEmpty());
}

TEST(Converters, KeepBoundsThatDoublesCannotHold) {
  ProgramWriter writer;
  const ValueId x = writer.input("x", {1}, DType::kI64);
  const int64_t largest = std::numeric_limits<int64_t>::max();
  writer.output(writer.call("aten.clamp.default", {{x}, {None{}}, {largest}}, {1}, DType::kI64));
  EXPECT_THAT(results(writer.program, {{5}}), ElementsAre(ElementsAre(5)));
}

TEST(Converters, PadUnevenSamesAtTheHighSide) {
  ProgramWriter writer;
  const ValueId x = writer.input("x", {1, 1, 3}), weight = writer.input("w", {1, 1, 2});
  writer.output(writer.call("aten.conv1d.padding",
                            {{x}, {weight}, {None{}}, list({1}), {std::string("same")}}, {1, 1, 3}));
  EXPECT_THAT(results(writer.program, {{1, 2, 3}, {10, 1}}), ElementsAre(ElementsAre(12, 23, 30)));
}

}  // namespace
}  // namespace ingot::core::aten::test
