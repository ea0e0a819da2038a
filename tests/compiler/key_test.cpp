// SPDX-License-Identifier: Apache-2.0
// The key of an engine distinguishes everything that determines it, and does not depend on the values of
// weights.
#include <gmock/gmock.h>

#include <algorithm>
#include <array>
#include <functional>
#include <map>
#include <numeric>

#include "backends/null/compile/backend.h"
#include "compiler/compile.h"
#include "support/error.h"

namespace ingot::core {
namespace {

using ::testing::HasSubstr;

constexpr int64_t kWidth = 40;  // more than a literal prints, so that constants are there by digest

aten::Input stored(aten::ValueId value, aten::InputKind kind, std::string name, float first) {
  Tensor tensor = make_tensor(DType::kF32, {kWidth});
  auto* values = reinterpret_cast<float*>(tensor.data.get());
  std::iota(values, values + kWidth, first);
  return {
      .value = value, .kind = kind, .name = std::move(name), .data = OwnedView{tensor.view(), tensor.data}};
}

aten::Node call(std::string target, aten::ValueId a, aten::ValueId b, aten::ValueId result) {
  return {.target = std::move(target),
          .name = "node" + std::to_string(result),
          .arguments = {{"self", {a}}, {"other", {b}}},
          .outputs = {result},
          .source = {.file = "model.py", .line = 3, .function = "forward"}};
}

// softmax(x * w - c) with x: f32[B, 40].
aten::Program small_program() {
  aten::Program program;
  program.argument_names = {"x"};
  program.origin = "a test";
  aten::Graph& graph = program.graph;
  graph.symbols["B"] = {.range = {1, 16}};
  const Dim batch = Dim::symbol("B");
  const auto add_value = [&](const char* name, std::vector<Dim> shape) {
    graph.values.push_back({.name = name, .tensor = {.dtype = DType::kF32, .shape = std::move(shape)}});
  };
  add_value("x", {batch, kWidth});
  add_value("w", {kWidth});
  add_value("c", {kWidth});
  for (const char* name : {"mul", "sub", "softmax"}) add_value(name, {batch, kWidth});
  graph.inputs = {{.value = 0, .name = "x"},
                  stored(1, aten::InputKind::kParameter, "layer.w", 1),
                  stored(2, aten::InputKind::kConstant, "c", 2)};
  graph.nodes = {call("aten.mul.Tensor", 0, 1, 3), call("aten.sub.Tensor", 3, 2, 4)};
  graph.nodes.push_back({.target = "aten.softmax.int",
                         .name = "softmax",
                         .arguments = {{"self", {aten::ValueId{4}}}, {"dim", {int64_t{1}}}},
                         .outputs = {5}});
  graph.outputs = {{.value = {aten::ValueId{5}}}};
  return program;
}

using Rows = std::map<std::string, std::string>;

std::shared_ptr<EngineData> build(const aten::Program& program, Rows rows = {}) {
  rows.insert({{"backend", "null"}, {"cpu", "x86-64-v3"}, {"threads", "2"}});
  const Backend* const backends[] = {&null::backend()};
  return compile(program, parse_options(rows), backends);
}

std::string key_of(const aten::Program& program, Rows rows = {}) {
  return build(program, std::move(rows))->key;
}

TEST(EngineKey, IsOneTextOfAllThatDecides) {
  const std::string key = key_of(small_program());
  EXPECT_THAT(key, HasSubstr("engine format " + std::to_string(kEngineFormatVersion)));
  EXPECT_THAT(key, HasSubstr("target null:"));
  EXPECT_THAT(key, HasSubstr("softmax("));
  EXPECT_THAT(key, HasSubstr("f32[40](sha256:"));
  EXPECT_THAT(key, HasSubstr("s0 in 1..16"));
  EXPECT_EQ(key_of(small_program()), key);
}

TEST(EngineKey, DoesNotSeeValuesOfWeightsOrLinesOfTheModel) {
  const std::string key = key_of(small_program());
  aten::Program program = small_program();
  program.graph.inputs[1] = stored(1, aten::InputKind::kParameter, "layer.w", 100);
  program.graph.nodes[0].source.line = 77;
  program.graph.nodes[0].name = "another_name";
  EXPECT_EQ(key_of(program), key);
  EXPECT_EQ(key_of(small_program(), {{"verify_passes", "false"}}), key);
  EXPECT_EQ(key_of(small_program(), {{"threads", "3"}}), key);
}

TEST(EngineKey, DoesNotSeeWhatIsBoundToItsStructure) {
  const std::string key = key_of(small_program());
  const std::map<std::string, std::function<void(aten::Program&)>> changes = {
      {"name of a weight", [](auto& p) { p.graph.inputs[1].name = "layer.v"; }},
      {"name of an input", [](auto& p) { p.graph.values[0].name = p.graph.inputs[0].name = "z"; }},
      {"name of an argument", [](auto& p) { p.argument_names[0] = "z"; }},
      {"names of a tree", [](auto& p) { p.input_tree = "[1, {}]"; }},
      {"literal output", [](auto& p) { p.graph.outputs.push_back({.value = {int64_t{4}}}); }},
      {"origin", [](auto& p) { p.origin = "another test"; }},
      {"name of a size",
       [](auto& p) {
         p.graph.symbols["A77"] = p.graph.symbols.at("B");
         p.graph.symbols.erase("B");
         for (aten::Value& value : p.graph.values) {
           for (Dim& dim : value.tensor.shape) dim = substitute(dim, {{"B", Dim::symbol("A77")}});
         }
       }},
  };
  for (const auto& [what, change] : changes) {
    aten::Program program = small_program();
    change(program);
    EXPECT_EQ(key_of(program), key) << what;
  }
}

TEST(EngineKey, SeesEveryChangeOfTheProgram) {
  const std::string key = key_of(small_program());
  const std::map<std::string, std::function<void(aten::Program&)>> changes = {
      {"constant", [](auto& p) { p.graph.inputs[2] = stored(2, aten::InputKind::kConstant, "c", 2.5F); }},
      {"weight or constant", [](auto& p) { p.graph.inputs[1].kind = aten::InputKind::kConstant; }},
      {"attribute", [](auto& p) { p.graph.nodes[2].arguments[1].argument.value = int64_t{0}; }},
      {"operator", [](auto& p) { p.graph.nodes[0].target = "aten.div.Tensor"; }},
      {"order of edges",
       [](auto& p) {
         std::swap(p.graph.nodes[1].arguments[0].argument, p.graph.nodes[1].arguments[1].argument);
       }},
      {"output", [](auto& p) { p.graph.outputs[0].value = {aten::ValueId{4}}; }},
      {"another output", [](auto& p) { p.graph.outputs.push_back({.value = {aten::ValueId{4}}}); }},
      {"range", [](auto& p) { p.graph.symbols["B"].range.max = 17; }},
      {"typical size", [](auto& p) { p.graph.symbols["B"].typical = 4; }},
  };
  for (const auto& [what, change] : changes) {
    aten::Program program = small_program();
    change(program);
    EXPECT_NE(key_of(program), key) << what;
  }
}

TEST(EngineKey, SeesEveryOptionThatDecides) {
  const std::string key = key_of(small_program());
  const Rows changes = {
      {"cpu", "x86-64-v4"},          {"optimization_level", "2"},       {"numerics", "strict"},
      {"disable_passes", "fuse"},    {"stop_after", "simplify"},        {"bisect_passes", "3"},
      {"shapes", "x:1..4..16x40"},   {"keep_original_weights", "true"}, {"device", "null:another"},
      {"immutable_weights", "true"}, {"enabled_precisions", "f16"},     {"keep_precision", "linear"},
      {"backend_of", "add=null"}};
  // Stripping happens behind the lookup, weights are always given, and unshared kernels are not looked up;
  // `target` names a device, of which `gpu` numbers one; `rank` and `random_seed` become part of nodes,
  // collectives and draws, of which this program has none, and `shards` of the names of weights.
  constexpr std::array kApart = {"strip_engine_weights",
                                 "refit_identical_engine_weights",
                                 "share_kernels",
                                 "trusted_keys",
                                 "weights_file",
                                 "target",
                                 "gpu",
                                 "random_seed",
                                 "shards",
                                 "rank"};
  for (const auto& row : changes) {
    EXPECT_NE(key_of(small_program(), {row}), key) << row.first;
  }
  EXPECT_NE(key_of(small_program(), {{"bisect_passes", "3"}}),
            key_of(small_program(), {{"bisect_passes", "3.1"}}));
  EXPECT_NE(key_of(small_program(), {{"disable_passes", "fuse"}}),
            key_of(small_program(), {{"disable_passes", "fuse@add"}}));
  for (const OptionInfo& option : all_options()) {
    const bool decides = option.name != "backend" && option.name != "threads" &&
                         !option.name.starts_with("verify_") &&
                         std::ranges::find(kApart, option.name) == kApart.end() &&
                         option.name.find("cache") == std::string_view::npos;
    EXPECT_EQ(changes.contains(std::string(option.name)), decides) << option.name;
  }
}

TEST(KernelKey, IsThatOfTheCodeAndItsTarget) {
  const auto keys = [](Rows rows) {
    rows.insert({"optimization_level", "0"});  // a kernel an op
    std::vector<Digest> keys;
    const auto engine = build(small_program(), rows);
    for (const Image& image : engine->images) keys.push_back(image.key);
    return keys;
  };
  const std::vector<Digest> first = keys({});
  ASSERT_GT(first.size(), 1u);
  EXPECT_NE(first[0], Digest{});
  EXPECT_NE(first[0], first[1]);
  EXPECT_EQ(keys({}), first);
  EXPECT_NE(keys({{"cpu", "x86-64-v4"}})[0], first[0]);
}

}  // namespace
}  // namespace ingot::core
