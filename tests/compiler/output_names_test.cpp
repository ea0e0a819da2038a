// SPDX-License-Identifier: Apache-2.0
#include "compiler/output_names.h"

#include <gmock/gmock.h>

namespace ingot::core {
namespace {

using ::testing::ElementsAre;

constexpr const char* kLeaf = R"({"type": null, "context": null, "children_spec": []})";

std::string quoted_text(const std::string& text) {
  std::string result = "\"";
  for (const char letter : text) {
    if (letter == '"') result += '\\';
    result += letter;
  }
  return result + "\"";
}

// A container as torch writes one; `context` is JSON.
std::string tree(const std::string& type, const std::string& context,
                 const std::vector<std::string>& children) {
  std::string text =
      R"({"type": ")" + type + R"(", "context": )" + quoted_text(context) + R"(, "children_spec": [)";
  for (size_t i = 0; i < children.size(); ++i) text += (i == 0 ? "" : ", ") + children[i];
  return text + "]}";
}

std::vector<std::string> names(const std::string& spec, std::vector<CallSlot> slots) {
  aten::Program program;
  program.output_tree = spec.empty() ? "" : "[1, " + spec + "]";
  aten::Imported model;
  model.output_slots = std::move(slots);
  return output_names(program, model);
}

std::string tuple(const std::vector<std::string>& children) {
  return tree("builtins.tuple", "null", children);
}

TEST(OutputNames, CountWhereNothingHasAName) {
  EXPECT_THAT(names(kLeaf, {TensorSlot{}}), ElementsAre("output_0"));
  EXPECT_THAT(names("", {TensorSlot{}}), ElementsAre("output_0"));
  EXPECT_THAT(names("", {TensorSlot{}, TensorSlot{}}), ElementsAre("output_0", "output_1"));
  EXPECT_THAT(names(tuple({kLeaf, kLeaf}), {TensorSlot{}, TensorSlot{}}),
              ElementsAre("output_0", "output_1"));
  EXPECT_THAT(names(tree("builtins.list", "null", {kLeaf}), {TensorSlot{}}), ElementsAre("output_0"));
}

TEST(OutputNames, AreKeysAndFields) {
  EXPECT_THAT(
      names(tree("builtins.dict", R"(["logits", "loss"])", {kLeaf, kLeaf}), {TensorSlot{}, TensorSlot{}}),
      ElementsAre("logits", "loss"));
  EXPECT_THAT(
      names(tree("collections.OrderedDict", R"(["b", "a"])", {kLeaf, kLeaf}), {TensorSlot{}, TensorSlot{}}),
      ElementsAre("b", "a"));
  EXPECT_THAT(names(tree("model.Result", R"([["mean", "scale"], ["extra"]])", {kLeaf, kLeaf}),
                    {TensorSlot{}, TensorSlot{}}),
              ElementsAre("mean", "scale"));
  EXPECT_THAT(names(tree("collections.defaultdict", R"({"dict_context": ["a"]})", {kLeaf}), {TensorSlot{}}),
              ElementsAre("a"));
  EXPECT_THAT(names(tree("builtins.dict", "[7, \"\"]", {kLeaf, kLeaf}), {TensorSlot{}, TensorSlot{}}),
              ElementsAre("output_7", "output_1"));
}

TEST(OutputNames, ArePathsInNestedResults) {
  const std::string pair = tuple({kLeaf, kLeaf});
  EXPECT_THAT(names(tree("transformers.Output", R"(["logits", "past"])", {kLeaf, tuple({pair})}),
                    {TensorSlot{}, TensorSlot{}, TensorSlot{}}),
              ElementsAre("logits", "past.0.0", "past.0.1"));
  EXPECT_THAT(names(tuple({kLeaf, tree("builtins.dict", R"(["x"])", {kLeaf})}), {TensorSlot{}, TensorSlot{}}),
              ElementsAre("output_0", "output_1.x"));
}

TEST(OutputNames, PassOverWhatIsNoTensor) {
  EXPECT_THAT(names(tuple({kLeaf, kLeaf, kLeaf}), {TensorSlot{}, PlainValue(None{}), TensorSlot{}}),
              ElementsAre("output_0", "output_2"));
  EXPECT_THAT(names("", {PlainValue(None{}), TensorSlot{}}), ElementsAre("output_1"));
}

TEST(OutputNames, Differ) {
  const std::string inner = tree("builtins.dict", R"(["b"])", {kLeaf});
  EXPECT_THAT(names(tree("builtins.dict", R"(["a.b", "a"])", {kLeaf, inner}), {TensorSlot{}, TensorSlot{}}),
              ElementsAre("a.b", "a.b_2"));
}

TEST(OutputNames, CountWhereTheTreeIsBroken) {
  std::string deep = kLeaf;
  for (int i = 0; i < 10'000; ++i) deep = R"({"type": "builtins.tuple", "children_spec": [)" + deep + "]}";
  const std::vector<std::string> broken = {"nonsense",
                                           "7",
                                           "{}",
                                           tuple({kLeaf}),
                                           tree("builtins.dict", "[\"a\"]", {"3"}),
                                           deep,
                                           R"({"type": "builtins.tuple", "children_spec": 1})"};
  for (const std::string& spec : broken)
    EXPECT_THAT(names(spec, {TensorSlot{}, TensorSlot{}}), ElementsAre("output_0", "output_1"))
        << spec.substr(0, 80);
  const std::string odd = tree("builtins.dict", R"(["a", {}])", {kLeaf, kLeaf});  // keys of no known kind
  EXPECT_THAT(names(odd, {TensorSlot{}, TensorSlot{}}), ElementsAre("output_0", "output_1"));
}

}  // namespace
}  // namespace ingot::core
