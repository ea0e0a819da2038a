// SPDX-License-Identifier: Apache-2.0
#include "importers/pt2/read_pt2.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "importers/aten/program/aten_text.h"
#include "importers/files/zip_archive.h"
#include "support/file.h"
#include "tests/importers/pt2_archives.h"

namespace ingot::core::pt2 {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

aten::Program golden(const std::string& name) { return read_pt2(MappedFile::open(test::golden_path(name))); }

const aten::Input& input(const aten::Program& program, const std::string& name) {
  const auto found = std::ranges::find(program.graph.inputs, name, &aten::Input::name);
  EXPECT_NE(found, program.graph.inputs.end()) << name;
  return *found;
}

std::vector<double> values(const aten::Input& input) {
  std::vector<double> result;
  const Tensor dense = to_dense(input.data->view);
  for (int64_t i = 0; i < dense.elements(); ++i) {
    TensorView flat = dense.view();
    flat.shape = {dense.elements()};
    flat.strides = {1};
    result.push_back(read_double(flat, std::array<int64_t, 1>{i}));
  }
  return result;
}

TEST(Pt2Weights, TiedTransposedAndSlicedShareTheirBytes) {
  const aten::Program program = golden("weights");
  const auto& first = input(program, "first.weight");
  EXPECT_EQ(first.data->view.data, input(program, "second.weight").data->view.data);
  const auto& transposed = input(program, "transposed");
  EXPECT_EQ(transposed.data->view.data, first.data->view.data);
  EXPECT_THAT(transposed.data->view.strides, ElementsAre(1, 4));
  const auto& base = input(program, "base");
  EXPECT_EQ(input(program, "low").data->view.data, base.data->view.data + 4 * sizeof(float));
  EXPECT_EQ(input(program, "high").data->view.data, base.data->view.data + 10 * sizeof(float));
  EXPECT_THAT(values(input(program, "high")), ElementsAre(10, 11, 12, 13, 14, 15, 16, 17));
}

TEST(Pt2Weights, HaveTheirValuesDtypesAndKinds) {
  const aten::Program program = golden("weights");
  EXPECT_EQ(input(program, "short").data->view.dtype, DType::kBF16);
  EXPECT_THAT(values(input(program, "short")), ElementsAre(1, 2, 3, 4));
  EXPECT_THAT(input(program, "empty").data->view.shape, ElementsAre(0, 4));
  EXPECT_EQ(input(program, "first.bias").kind, aten::InputKind::kParameter);
  EXPECT_EQ(input(program, "count").kind, aten::InputKind::kBuffer);
  EXPECT_THAT(values(input(program, "count")), ElementsAre(5));
  EXPECT_EQ(input(program, "scratch").kind, aten::InputKind::kBuffer);
  EXPECT_THAT(values(input(program, "scratch")), ElementsAre(0.5));
  EXPECT_EQ(input(program, "x").kind, aten::InputKind::kUser);
  EXPECT_FALSE(input(program, "x").data.has_value());
}

TEST(Pt2Weights, KeepTheirStrides) {
  const aten::Program program = golden("image");
  EXPECT_THAT(input(program, "body.0.0.weight").data->view.strides, ElementsAre(8, 1, 4, 2));
  EXPECT_THAT(to_string(program), HasSubstr("%conv2d: f32[1,3,2,2]{12, 1, 6, 3} = aten.conv2d.default"));
}

TEST(Pt2Weights, LieInTheMappedFile) {
  const auto file = MappedFile::open(test::golden_path("weights"));
  const aten::Program program = read_pt2(file->bytes(), file);
  for (const aten::Input& input : program.graph.inputs) {
    if (!input.data || !input.data->view.data) continue;
    EXPECT_GE(input.data->view.data, file->bytes().data());
    EXPECT_LT(input.data->view.data, file->bytes().data() + file->bytes().size());
  }
}

TEST(Pt2Weights, OutliveTheReader) {
  std::optional<aten::Input> kept;
  kept = input(golden("weights"), "count");
  EXPECT_THAT(values(*kept), ElementsAre(5));
}

TEST(Pt2Weights, AreCopiedWhereTheyAreNotAligned) {
  const std::string bytes = test::read_bytes(test::golden_path("weights"));
  const auto owner = std::make_shared<std::string>("x" + bytes);
  const aten::Program program = read_pt2(as_bytes(*owner).subspan(1), owner);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(input(program, "base").data->view.data) % 16, 0u);
  EXPECT_THAT(values(input(program, "low")), ElementsAre(4, 5, 6, 7, 8, 9, 10, 11));
  EXPECT_EQ(input(program, "low").data->view.data,
            input(program, "base").data->view.data + 4 * sizeof(float));
}

TEST(Pt2Program, KeepsTheCallingConvention) {
  const aten::Program program = golden("arguments");
  EXPECT_THAT(program.argument_names, ElementsAre("x", "scale", "pair", "factor", "name"));
  EXPECT_THAT(program.input_tree, HasSubstr("builtins.tuple"));
  EXPECT_THAT(program.output_tree, HasSubstr("builtins.list"));
  EXPECT_THAT(golden("weights").output_tree, HasSubstr("builtins.dict"));
  EXPECT_EQ(program.origin, "torch 2.13.0+cpu, schema 8.20");
}

TEST(Pt2Program, TellsConstantInputsAndOutputs) {
  const std::string text = to_string(golden("arguments"));
  EXPECT_THAT(text, HasSubstr("input %scale = 3\n"));
  EXPECT_THAT(text, HasSubstr("input %factor = 0.5\n"));
  EXPECT_THAT(text, HasSubstr("input %name = none\n"));
  EXPECT_THAT(text, HasSubstr("input %x: f32[2,2]{4, 1}\n"));
  EXPECT_THAT(text, HasSubstr("  return 3\n  return none\n}"));
}

TEST(Pt2Program, CompletesArgumentsOfEveryKind) {
  const std::string text = to_string(golden("arguments"));
  EXPECT_THAT(text, HasSubstr("aten.masked_fill.Scalar(self=%x, mask=%gt, value=-inf)"));
  EXPECT_THAT(text, HasSubstr("aten.index.Tensor(self=%mul, indices=[none, %detach_])"));
  EXPECT_THAT(text, HasSubstr("aten.clamp.default(self=%add, min=-1e+30, max=none)"));
  EXPECT_THAT(
      text, HasSubstr("aten.zeros.default(size=[2], dtype=i32, layout=none, device=cpu, pin_memory=false)"));
  EXPECT_THAT(text, HasSubstr("constant %c_lifted_tensor_0: i64[2] \"lifted_tensor_0\""));
  EXPECT_THAT(text, HasSubstr("-- make_pt2.py:"));
}

TEST(Pt2Program, NamesTheLineAndModuleOfTheUser) {
  const aten::Program program = golden("image");
  const aten::Source& source = program.graph.nodes[0].source;  // made inside torch.nn, called from the script
  EXPECT_EQ(source.file, "make_pt2.py");
  EXPECT_EQ(source.function, "forward");
  EXPECT_GT(source.line, 0);
  EXPECT_EQ(source.module_path, "body.0.0");
}

TEST(Pt2Program, ReadsBothDialects) {
  const std::string training = to_string(golden("mutation"));
  EXPECT_THAT(training, HasSubstr("aten.index_copy_.default(self=%b_cache"));
  EXPECT_THAT(training, HasSubstr("higher_order.wrap_with_set_grad_enabled(false, graph {"));
  EXPECT_THAT(training, HasSubstr("aten.add_.Tensor(self=%x"));
  const aten::Program functional = golden("mutation.functional");
  const std::string text = to_string(functional);
  EXPECT_THAT(text, HasSubstr("update buffer \"cache\" = %index_copy\n"));
  EXPECT_THAT(text, HasSubstr("update input \"x\" = %add\n"));
  EXPECT_EQ(functional.graph.outputs[0].kind, aten::OutputKind::kBufferMutation);
}

TEST(Pt2Program, ReadsNestedGraphsInScopesOfTheirOwn) {
  const aten::Program program = golden("control");
  const auto cond = std::ranges::find(program.graph.nodes, "higher_order.cond", &aten::Node::target);
  ASSERT_NE(cond, program.graph.nodes.end());
  ASSERT_EQ(cond->arguments.size(), 4u);
  const auto branch = std::get<std::shared_ptr<aten::Graph>>(cond->arguments[1].argument.value);
  EXPECT_EQ(branch->inputs.size(), 3u);
  EXPECT_EQ(branch->nodes[0].target, "aten.linear.default");
  const auto loop = std::ranges::find(program.graph.nodes, "higher_order.while_loop", &aten::Node::target);
  ASSERT_NE(loop, program.graph.nodes.end());
  const auto condition = std::get<std::shared_ptr<aten::Graph>>(loop->arguments[0].argument.value);
  EXPECT_TRUE(condition->single_tensor_return);
  EXPECT_EQ(std::get<aten::ArgumentList>(loop->arguments[2].argument.value).size(), 2u);
}

TEST(Pt2Program, ReadsSymbolicSizes) {
  const aten::Program program = golden("dynamic");
  const std::string text = to_string(program);
  EXPECT_THAT(text, HasSubstr("%x: f32[s77,s27]"));
  EXPECT_EQ(program.graph.symbols.at("s77").range, (DimRange{2, 16}));
  EXPECT_EQ(program.graph.symbols.at("s77").typical, 3);
  EXPECT_EQ(program.graph.symbols.at("s27").range, (DimRange{3, INT64_MAX}));
  EXPECT_THAT(text, HasSubstr("%floordiv: int floordiv(s27 + 1, 2) = _operator.floordiv(a=%add, b=2)"));
  EXPECT_THAT(text, HasSubstr("f32[s77,1,floordiv(3*s27, 2)]"));  // sizes that torch rounds in floats
  EXPECT_THAT(text, HasSubstr("%nonzero: i64[u0,1]"));
  EXPECT_THAT(text, HasSubstr("%reshape: f32[s27*s77]"));
  EXPECT_THAT(text, HasSubstr("%ge: bool = _operator.ge(a="));
  EXPECT_THAT(text, HasSubstr("= aten.split_with_sizes.default(self=%x, split_sizes=[1, %sub], dim=1)"));
}

}  // namespace
}  // namespace ingot::core::pt2
