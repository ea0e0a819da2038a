// SPDX-License-Identifier: Apache-2.0
// Reading and importing ONNX models: right ones, and whatever damage makes of them.
#include <gmock/gmock.h>

#include <random>

#include <fmt/core.h>

#include "backends/null/compile/backend.h"
#include "compiler/compile.h"
#include "evaluate/evaluate.h"
#include "importers/onnx/import.h"
#include "ir/verify.h"
#include "support/error.h"
#include "tests/importers/onnx_messages.h"
#include "tests/importers/onnx_models.h"
#include "tests/support/long_mode.h"

namespace ingot::core::onnx {
namespace {

using namespace test;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::shared_ptr<const LoadedModel> loaded(const std::string& file) {
  const auto owner = std::make_shared<const std::string>(file);
  return load(as_bytes(*owner), owner, std::nullopt);
}

aten::Imported imported(const std::string& file, bool weights_are_constants = false) {
  return import_model(*loaded(file), weights_are_constants);
}

std::string refusal_of(const std::string& file) {
  try {
    const auto model = loaded(file);
    describe(*model);
    verify(import_model(*model, false).graph, "importing");
  } catch (const UserError& error) {
    return error.what();
  } catch (const UnsupportedError& error) {
    return error.what();
  }
  return "";
}

Tensor floats(const std::vector<int64_t>& shape, const std::vector<float>& values) {
  const Tensor tensor = make_tensor(DType::kF32, shape);
  std::copy(values.begin(), values.end(), reinterpret_cast<float*>(tensor.data.get()));
  return tensor;
}

TEST(Onnx, ImportsNamesWeightsAndSymbols) {
  const std::string file = small_model();
  const aten::Program program = describe(*loaded(file));
  EXPECT_THAT(program.argument_names, ElementsAre("x"));
  EXPECT_THAT(program.output_names, ElementsAre("y"));
  const aten::Imported model = imported(file);
  ASSERT_EQ(model.weights.size(), 2u);
  EXPECT_EQ(model.weights[0].name, "w");
  EXPECT_EQ(to_string(model.graph.inputs()[0]->type), "f32[batch,4]");
  EXPECT_EQ(to_string(model.graph.outputs[0]->type), "f32[batch,3]");
}

TEST(Onnx, ComputesTheModel) {
  aten::Imported model = imported(small_model(), true);
  const Tensor x = floats({2, 4}, {1, 0, 0, 0, 0, 0, 0, 0});
  const Tensor y = evaluate(model.graph, {&x, 1}, {}).outputs.at(0);
  double total = 0;
  for (int64_t i = 0; i < 3; ++i) total += read_double(y.view(), {{0, i}});
  EXPECT_NEAR(total, 1, 1e-6);
  EXPECT_GT(read_double(y.view(), {{0, 2}}), read_double(y.view(), {{0, 0}}));  // 9 - 1 > 1 + 1
}

TEST(Onnx, ImportsBranchesAndLoops) {
  for (const std::string& file : control_models()) EXPECT_EQ(refusal_of(file), "");
}

TEST(Onnx, EveryPrefixIsAnError) {
  const std::string file = small_model();
  for (size_t length = 0; length < file.size(); ++length)
    EXPECT_NE(refusal_of(file.substr(0, length)), "") << length;
}

// Anything but a crash or an internal error.
TEST(Onnx, DamageIsAnErrorOrAModel) {
  std::vector<std::string> files = control_models();
  files.push_back(small_model());
  std::minstd_rand random(7);
  for (size_t round = 0; round < 5000; ++round) {
    std::string damaged = files[round % files.size()];
    for (size_t count = 1 + random() % 4; count > 0; --count) {
      const size_t at = random() % damaged.size();
      switch (random() % 3) {
        case 0:
          damaged[at] = static_cast<char>(damaged[at] ^ 1 << random() % 8);
          break;
        case 1:
          damaged[at] = static_cast<char>(random());
          break;
        default:
          damaged.insert(at, damaged.substr(random() % damaged.size(), random() % 16));
          break;
      }
    }
    refusal_of(damaged);
  }
}

// Fields in place of bytes: what is damaged is the model, and not its file.
TEST(Onnx, ChangedModelsAreErrorsOrEngines) {
  std::vector<std::string> files = control_models();
  files.push_back(small_model());
  const Backend* const backends[] = {&null::backend()};
  CompileOptions options;
  options.target.backend = "null";
  std::minstd_rand random(11);
  size_t engines = 0;
  const size_t rounds = core::test::is_long_mode() ? 100000 : 2000;
  for (size_t round = 0; round < rounds; ++round) {
    std::string changed = files[round % files.size()];
    for (size_t count = 1 + random() % 3; count > 0; --count)
      changed = mutated_model(changed, random).value();
    SCOPED_TRACE(fmt::format("round {}", round));
    try {
      const auto read = loaded(changed);
      const aten::Program program = describe(*read);
      verify(import_model(*read, true).graph, "importing");
      compile_model(program, [&] { return import_model(*read, false); }, options, backends);
      ++engines;
    } catch (const UserError&) {
    } catch (const UnsupportedError&) {
    }
  }
  EXPECT_GT(engines, rounds / 20);
}

TEST(Onnx, NamesWhatIsWrong) {
  constexpr int kFloat = 1;
  EXPECT_THAT(refusal_of("no model"), HasSubstr("INGOT-U540"));
  EXPECT_THAT(refusal_of(model(input("x", {"2"}) + node("Relu", {"y"}, {"y"}) + output("y"))),
              HasSubstr("ONNX Relu: 'y' is used before"));
  EXPECT_THAT(refusal_of(model(input("x", {"2"}) + node("Loop", {"x"}, {"y"}) + output("y"))),
              HasSubstr("INGOT-U543"));
  EXPECT_THAT(refusal_of(model(tensor("w", kFloat, {int64_t{1} << 62, 8}, "") + output("w"))),
              HasSubstr("INGOT-U541"));
  EXPECT_THAT(refusal_of(model(tensor("w", kFloat, {3}, "1234") + output("w"))),
              HasSubstr("needs 12 bytes, not 4"));
  EXPECT_THAT(refusal_of(model(input("x", {"2"}, 8) + output("x"))), HasSubstr("elements of type string"));
  EXPECT_THAT(refusal_of(model(input("x", {"2"}) + output("x"), 99)), HasSubstr("INGOT-N542"));
}

std::string body(const std::string& step, const Names& results) {
  std::string graph = input("i", {}, 7) + input("go", {}, 9) + input("s", {}) + step;
  for (const std::string& result : results) graph += output(result);
  return graph_attribute("body", graph);
}

// What the build knows of a condition or a count may have any number of elements.
TEST(Onnx, ConditionsAndCountsAreSingleValues) {
  const std::string step = body(node("Neg", {"s"}, {"next"}), {"go", "next"});
  const std::string branches =
      graph_attribute("then_branch", output("x")) + graph_attribute("else_branch", output("x"));
  for (const int64_t count : {0, 2}) {
    const std::string values =
        tensor("condition", 9, {count}, std::string(static_cast<size_t>(count), '\1')) +
        tensor("count", 7, {count}, std::string(static_cast<size_t>(count) * 8, '\1'));
    for (const std::string& broken :
         {node("Loop", {"", "condition", "x"}, {"y"}, step), node("Loop", {"count", "", "x"}, {"y"}, step),
          node("If", {"condition"}, {"y"}, branches)})
      EXPECT_THAT(refusal_of(model(input("x", {"2"}) + values + broken + output("y"))),
                  AllOf(HasSubstr("INGOT-U543"), HasSubstr("is not a single value")));
  }
}

// Sizes that follow from constants alone are computed in the build, which ends whatever they ask for.
TEST(Onnx, TheWorkForConstantsIsLimited) {
  constexpr int kInteger = 7;
  const std::string one = tensor("one", kInteger, {1}, raw<int64_t>({1}));
  const std::string reshape = node("Reshape", {"x", "size"}, {"y"}) + output("y");
  const std::string loop =
      tensor("count", kInteger, {}, raw<int64_t>({int64_t{1} << 62})) +
      node("Loop", {"count", "", "one"}, {"size"}, body(node("Add", {"s", "one"}, {"next"}), {"go", "next"}));
  EXPECT_THAT(refusal_of(model(input("x", {"2"}) + one + loop + reshape)),
              HasSubstr("depends on values of a run"));
  std::string products =
      tensor("shape", kInteger, {2}, raw<int64_t>({256, 256})) + node("ConstantOfShape", {"shape"}, {"p0"});
  for (int i = 0; i < 500; ++i) {
    const std::string from = "p" + std::to_string(i);
    products += node("MatMul", {from, from}, {"p" + std::to_string(i + 1)});
  }
  products += node("ReduceMax", {"p500"}, {"most"}, integer_attribute("keepdims", 0)) +
              node("Cast", {"most"}, {"number"}, integer_attribute("to", kInteger)) +
              node("Reshape", {"number", "one"}, {"size"});
  EXPECT_THAT(refusal_of(model(input("x", {"2"}) + one + products + reshape)),
              HasSubstr("depends on values of a run"));
}

TEST(Onnx, SizesAreDividedAsInteger64) {
  constexpr int kInteger = 7;
  const std::string numbers = tensor("least", kInteger, {1}, raw<int64_t>({INT64_MIN})) +
                              tensor("minus", kInteger, {1}, raw<int64_t>({-1}));
  const std::string sizes = node("Shape", {"x"}, {"s"}) +
                            node("Concat", {"least", "s"}, {"all"}, integer_attribute("axis", 0)) +
                            node("Div", {"all", "minus"}, {"size"}) + node("Reshape", {"x", "size"}, {"y"});
  EXPECT_NE(refusal_of(model(input("x", {"n"}) + numbers + sizes + output("y"))), "");
}

// A graph in a graph in a graph ...: the reader counts levels before it recurses.
TEST(Onnx, NestedGraphsAreLimited) {
  std::string graph = output("x");
  for (int level = 0; level < 5000; ++level)
    graph = node("If", {"c"}, {"y"}, bytes_field(5, bytes_field(1, "then_branch") + bytes_field(6, graph)));
  EXPECT_THAT(refusal_of(model(graph)), HasSubstr("nested too deep"));
}

// Each function calls the one before it twice: 2^40 nodes if all were expanded.
TEST(Onnx, ExpandedFunctionsAreLimited) {
  const auto call = [](int number, const char* from, const char* to) {
    return bytes_field(7, bytes_field(1, from) + bytes_field(2, to) +
                              bytes_field(4, "f" + std::to_string(number)) + bytes_field(7, "own"));
  };
  std::string functions;
  for (int i = 1; i <= 30; ++i) {
    functions += bytes_field(25, bytes_field(1, "f" + std::to_string(i)) + bytes_field(4, "a") +
                                     bytes_field(5, "c") + call(i - 1, "a", "b") + call(i - 1, "b", "c") +
                                     bytes_field(10, "own") + bytes_field(9, number_field(2, 18)));
  }
  functions +=
      bytes_field(25, bytes_field(1, "f0") + bytes_field(4, "a") + bytes_field(5, "c") +
                          bytes_field(7, bytes_field(1, "a") + bytes_field(2, "c") + bytes_field(4, "Relu")) +
                          bytes_field(10, "own") + bytes_field(9, number_field(2, 18)));
  const std::string graph =
      input("x", {"2"}) + node("f30", {"x"}, {"y"}, bytes_field(7, "own")) + output("y");
  EXPECT_THAT(refusal_of(model(graph) + functions), HasSubstr("too many nodes"));
}

}  // namespace
}  // namespace ingot::core::onnx
