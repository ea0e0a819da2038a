// SPDX-License-Identifier: Apache-2.0
#include "tests/api/fixtures.h"

#include "api/compiler/builder.h"

namespace ingot::core::testing {
namespace {

ingot_argument argument(int32_t kind, int64_t integer = 0, int32_t count = 0, const char* text = nullptr) {
  return {.name = "", .kind = kind, .count = count, .integer = integer, .number = 0, .text = text};
}

class BuilderTest : public ::testing::Test {
 protected:
  BuilderTest() {
    ingot_builder* builder = nullptr;
    EXPECT_EQ(code_of(ingot_builder_create("torch 2.13.0", &builder)), "");
    builder_.reset(builder);
  }

  uint32_t add_value(const char* name, std::vector<const char*> dims, int32_t dtype = INGOT_F32) {
    const ingot_value value{.struct_size = sizeof(ingot_value),
                            .name = name,
                            .kind = INGOT_VALUE_TENSOR,
                            .dtype = dtype,
                            .rank = static_cast<int32_t>(dims.size()),
                            .dims = dims.data(),
                            .strides = nullptr};
    uint32_t id = 0;
    code_ = code_of(ingot_builder_value(builder_.get(), &value, &id));
    return id;
  }

  std::string add_node(const std::vector<ingot_argument>& arguments, std::vector<int64_t> outputs) {
    ingot_node node{.struct_size = sizeof(ingot_node), .target = "aten.relu.default", .name = "relu"};
    node.arguments = arguments.data();
    node.argument_count = arguments.size();
    node.outputs = outputs.data();
    node.output_count = outputs.size();
    return code_of(ingot_builder_node(builder_.get(), &node));
  }

  std::string add_weight(uint32_t value, const std::vector<float>& data, std::vector<int64_t> shape) {
    const ingot_tensor tensor{const_cast<float*>(data.data()), INGOT_F32, static_cast<int32_t>(shape.size()),
                              shape.data(), nullptr};
    ingot_input input{.struct_size = sizeof(ingot_input), .value = value, .kind = INGOT_INPUT_PARAMETER};
    input.name = "layer.weight";
    input.data = &tensor;
    input.release = [](void* owner) { ++*static_cast<int*>(owner); };
    input.owner = &released_;
    return code_of(ingot_builder_input(builder_.get(), &input));
  }

  const aten::Graph& graph() const { return builder_->program.graph; }

  Owned<ingot_builder> builder_;
  std::string code_;
  int released_ = 0;
};

TEST_F(BuilderTest, KeepsValuesAndSymbols) {
  EXPECT_EQ(code_of(ingot_builder_symbol(builder_.get(), "S", 1, 8, 4)), "");
  EXPECT_EQ(add_value("x", {"S", "2*S + 1"}), 0u);
  EXPECT_EQ(add_value("y", {"3"}), 1u);
  EXPECT_EQ(graph().values[0].tensor.shape[1], Dim(2) * Dim::symbol("S") + Dim(1));
  EXPECT_EQ(graph().symbols.at("S").typical, 4);
  add_value("z", {"2*"});
  EXPECT_EQ(code_, "INGOT-U105");
  add_value("z", {"2"}, 77);
  EXPECT_EQ(code_, "INGOT-U016");
  EXPECT_EQ(code_of(ingot_builder_symbol(builder_.get(), "T", 9, 8, 4)), "INGOT-U017");
}

TEST_F(BuilderTest, ReadsNestedArguments) {
  add_value("x", {"2"});
  add_value("y", {"2"});
  const std::vector<ingot_argument> arguments = {
      argument(INGOT_ARGUMENT_VALUE, 0),        argument(INGOT_ARGUMENT_LIST, 0, 2),
      argument(INGOT_ARGUMENT_INTEGER, 5),      argument(INGOT_ARGUMENT_LIST, 0, 1),
      argument(INGOT_ARGUMENT_BOOL, 1),         argument(INGOT_ARGUMENT_DEVICE, 0, 0, "cuda:1"),
      argument(INGOT_ARGUMENT_DTYPE, INGOT_F16)};
  ASSERT_EQ(add_node(arguments, {1, -1}), "");
  const aten::Node& node = graph().nodes[0];
  ASSERT_EQ(node.arguments.size(), 4u);
  const auto& list = std::get<aten::ArgumentList>(node.arguments[1].argument.value);
  EXPECT_EQ(std::get<int64_t>(list[0].value), 5);
  EXPECT_TRUE(std::get<bool>(std::get<aten::ArgumentList>(list[1].value)[0].value));
  EXPECT_EQ(std::get<aten::Device>(node.arguments[2].argument.value).index, 1);
  EXPECT_EQ(std::get<DType>(node.arguments[3].argument.value), DType::kF16);
  EXPECT_EQ(node.outputs[1], std::nullopt);
}

TEST_F(BuilderTest, ReadsComplexNumbers) {
  ingot_argument re = argument(INGOT_ARGUMENT_FLOAT), im = argument(INGOT_ARGUMENT_FLOAT);
  re.number = 2, im.number = -0.5;
  ASSERT_EQ(add_node({argument(INGOT_ARGUMENT_COMPLEX), re, im}, {}), "");
  EXPECT_EQ(std::get<std::complex<double>>(graph().nodes[0].arguments[0].argument.value),
            std::complex(2.0, -0.5));
  EXPECT_EQ(add_node({argument(INGOT_ARGUMENT_COMPLEX), re}, {}), "INGOT-U017");
  EXPECT_EQ(add_node({argument(INGOT_ARGUMENT_COMPLEX), re, argument(INGOT_ARGUMENT_INTEGER)}, {}),
            "INGOT-U017");
}

TEST_F(BuilderTest, RefusesMisuse) {
  add_value("x", {"2"});
  EXPECT_EQ(add_node({argument(INGOT_ARGUMENT_VALUE, 3)}, {}), "INGOT-U017");
  EXPECT_EQ(add_node({argument(INGOT_ARGUMENT_LIST, 0, 2), argument(INGOT_ARGUMENT_NONE)}, {}), "INGOT-U017");
  EXPECT_EQ(add_node({argument(INGOT_ARGUMENT_GRAPH, 0)}, {}), "INGOT-U017");
  EXPECT_EQ(add_node({argument(INGOT_ARGUMENT_DEVICE, 0, 0, "cuda:x")}, {}), "INGOT-U017");
  EXPECT_EQ(add_node({argument(55)}, {}), "INGOT-U016");
  EXPECT_EQ(add_node({}, {8}), "INGOT-U017");
  EXPECT_EQ(add_node(std::vector<ingot_argument>(40, argument(INGOT_ARGUMENT_LIST, 0, 1)), {}), "INGOT-U017");
  EXPECT_TRUE(graph().nodes.empty());
}

TEST_F(BuilderTest, GivesWeightsBack) {
  add_value("w", {"2"});
  EXPECT_EQ(add_weight(0, {1, 2}, {2}), "");
  EXPECT_EQ(released_, 0);
  EXPECT_EQ(add_weight(0, {1, 2, 3}, {3}), "INGOT-U017");  // not the type in the graph
  EXPECT_EQ(released_, 1);
  builder_.reset();
  EXPECT_EQ(released_, 2);
}

TEST_F(BuilderTest, NestsGraphs) {
  int64_t id = -1;
  EXPECT_EQ(code_of(ingot_builder_end_graph(builder_.get(), &id)), "INGOT-U017");
  EXPECT_EQ(code_of(ingot_builder_begin_graph(builder_.get())), "");
  EXPECT_EQ(add_value("inner", {"2"}), 0u);
  EXPECT_EQ(code_of(ingot_builder_end_graph(builder_.get(), &id)), "");
  EXPECT_EQ(id, 0);
  EXPECT_EQ(add_value("outer", {"2"}), 0u);
  EXPECT_EQ(add_node({argument(INGOT_ARGUMENT_GRAPH, 0)}, {0}), "");
}

TEST(Options, AreDescribed) {
  ASSERT_GT(ingot_option_count(), 0u);
  ingot_option_info info{};
  info.struct_size = sizeof(info);
  EXPECT_EQ(code_of(ingot_option_describe(0, &info)), "");
  EXPECT_STRNE(info.name, "");
  EXPECT_STRNE(info.summary, "");
  EXPECT_EQ(code_of(ingot_option_describe(ingot_option_count(), &info)), "INGOT-U014");
}

TEST_F(BuilderTest, ChecksOptionsAtOnce) {
  const auto code = [](const ingot_builder* builder, const char* name, const char* value) {
    const ingot_option given[] = {{"backend", "null"}, {name, value}};
    const ingot_build_options options{sizeof(ingot_build_options), given, 2, nullptr, nullptr};
    return code_of(ingot_check_options(builder, &options));
  };
  add_value("x", {"2"});
  ingot_input input{.struct_size = sizeof(ingot_input), .value = 0, .kind = INGOT_INPUT_USER, .name = "x"};
  ASSERT_EQ(code_of(ingot_builder_input(builder_.get(), &input)), "");
  EXPECT_EQ(code_of(ingot_check_options(nullptr, nullptr)), INGOT_HAS_LLVM ? "" : "INGOT-U003");
  EXPECT_EQ(code(nullptr, "optimization_level", "2"), "");
  EXPECT_EQ(code(nullptr, "optimization_level", "5"), "");
  EXPECT_EQ(code(nullptr, "optimization_level", "6"), "INGOT-U002");
  EXPECT_EQ(code(nullptr, "optimisation_level", "2"), "INGOT-U001");
  EXPECT_EQ(code(nullptr, "backend", "no_such_thing"), "INGOT-U003");
  EXPECT_EQ(code(nullptr, "disable_passes", "simplify,no_such_thing"), "INGOT-U004");
  EXPECT_EQ(code(nullptr, "shapes", "y:3"), "");  // no program to compare with
  EXPECT_EQ(code(builder_.get(), "shapes", "x:2"), "");
  EXPECT_EQ(code(builder_.get(), "shapes", "y:2"), "INGOT-U011");
  EXPECT_EQ(code(builder_.get(), "shapes", "x:3"), "INGOT-U011");
}

}  // namespace
}  // namespace ingot::core::testing
