// SPDX-License-Identifier: Apache-2.0
// An engine is found by its structure, and gets the names, lines and values of the model that is built: it is
// the engine that a build without a cache makes, byte for byte.
#include "compiler/engine_entry.h"

#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <numeric>

#include "backends/null/compile/backend.h"
#include "compiler/compile.h"
#include "engine/engine_file.h"

namespace ingot::core {
namespace {

constexpr int64_t kRowLength = 40;

struct BuiltEngine {
  std::shared_ptr<EngineData> engine;
  BuildReport report;
};

using OptionRows = std::map<std::string, std::string>;

BuiltEngine built_with(const aten::Program& program, Cache* cache, OptionRows rows = {}) {
  rows.insert({{"backend", "null"}, {"cpu", "x86-64-v3"}});
  const Backend* const backends[] = {&null::backend()};
  BuiltEngine built;
  built.engine = compile(program, parse_options(rows), backends, {.cache = cache}, &built.report);
  return built;
}

std::vector<std::byte> file_of(const EngineData& engine) {
  std::vector<std::byte> bytes;
  write_engine(engine, [&](Bytes part) { bytes.insert(bytes.end(), part.begin(), part.end()); });
  return bytes;
}

// A program that a test writes call by call.
struct ProgramWriter {
  aten::Program program;

  ProgramWriter() {
    program.argument_names = {"x"};
    program.origin = "a test";
    program.graph.symbols["s7"] = {.range = {2, 16}};
  }

  aten::ValueId value(std::string name, std::vector<Dim> shape) {
    program.graph.values.push_back(
        {.name = std::move(name), .tensor = {.dtype = DType::kF32, .shape = std::move(shape)}});
    return static_cast<aten::ValueId>(program.graph.values.size() - 1);
  }
  std::vector<Dim> rows() const {
    return {Dim::symbol(program.graph.symbols.begin()->first), Dim(kRowLength)};
  }

  aten::ValueId input(const std::string& name) {
    const aten::ValueId id = value(name, rows());
    program.graph.inputs.push_back({.value = id, .name = name});
    return id;
  }

  aten::ValueId stored(const std::string& name, aten::InputKind kind, float first) {
    Tensor tensor = make_tensor(DType::kF32, {kRowLength});
    auto* values = reinterpret_cast<float*>(tensor.data.get());
    std::iota(values, values + kRowLength, first);
    const aten::ValueId id = value("p_" + name, {Dim(kRowLength)});
    program.graph.inputs.push_back(
        {.value = id, .kind = kind, .name = name, .data = OwnedView{tensor.view(), tensor.data}});
    return id;
  }

  aten::ValueId call(const std::string& target, const std::string& name, aten::ValueId a, aten::ValueId b,
                     std::vector<Dim> shape = {}) {
    const aten::ValueId id = value(name, shape.empty() ? rows() : std::move(shape));
    program.graph.nodes.push_back({.target = target,
                                   .name = name,
                                   .arguments = {{"self", {a}}, {"other", {b}}},
                                   .outputs = {id},
                                   .source = {.file = "model.py", .line = ++line, .function = "forward"}});
    return id;
  }

  int line = 3;
};

// (x * (a * b)) - ((x + b) / c): init has a step, main several, and names that passes make would collide.
struct Names {
  std::string x = "x", a = "layer.a", b = "layer.b", c = "c", first = "mul", second = "mul_1", third = "add",
              fourth = "div", last = "sub", symbol = "s7";
  int line = 3;
  float weights = 1;
};

aten::Program program_of(const Names& names, bool is_reordered = false) {
  ProgramWriter writer;
  writer.line = names.line;
  if (names.symbol != "s7") {
    writer.program.graph.symbols = {{names.symbol, writer.program.graph.symbols.at("s7")}};
  }
  writer.program.argument_names = {names.x};
  const aten::ValueId x = writer.input(names.x);
  const aten::ValueId a = writer.stored(names.a, aten::InputKind::kParameter, names.weights);
  const aten::ValueId b = writer.stored(names.b, aten::InputKind::kBuffer, names.weights + 3);
  const aten::ValueId c = writer.stored(names.c, aten::InputKind::kConstant, 2);
  aten::ValueId left = 0, third = 0;
  const auto call_left = [&] {
    const aten::ValueId scale = writer.call("aten.mul.Tensor", names.first, a, b, {Dim(kRowLength)});
    left = writer.call("aten.mul.Tensor", names.second, x, scale);
  };
  if (!is_reordered) call_left();
  third = writer.call("aten.add.Tensor", names.third, x, b);
  if (is_reordered) call_left();
  const aten::ValueId right = writer.call("aten.div.Tensor", names.fourth, third, c);
  const aten::ValueId last = writer.call("aten.sub.Tensor", names.last, left, right);
  writer.program.graph.outputs = {{.value = {last}}};
  return std::move(writer.program);
}

const std::map<std::string, std::function<void(Names&)>>& other_names() {
  static const std::map<std::string, std::function<void(Names&)>> kChanges = {
      {"weights", [](Names& n) { n.weights = 9; }},
      {"name of a weight", [](Names& n) { n.a = "other.a"; }},
      {"order of the weights' names", [](Names& n) { std::swap(n.a, n.b); }},
      {"name of an input", [](Names& n) { n.x = "tokens"; }},
      {"lines", [](Names& n) { n.line = 700; }},
      {"names of calls", [](Names& n) { n.first = "scale", n.fourth = "quotient", n.last = "result"; }},
      {"names that passes would make",
       [](Names& n) { n.first = "sub", n.second = "sub_1", n.last = "sub_2"; }},
      {"names of values as of weights", [](Names& n) { n.third = "weight", n.fourth = "weight_1"; }},
      {"number of a size", [](Names& n) { n.symbol = "s12"; }},
      {"name of a size", [](Names& n) { n.symbol = "batch"; }},
      {"name of a constant", [](Names& n) { n.c = "table"; }},
      {"everything",
       [](Names& n) { n = {"z", "w.0", "w.1", "k", "n0", "n1", "n2", "n3", "n4", "s99", 50, -4}; }},
  };
  return kChanges;
}

TEST(EngineEntry, IsFoundByStructureAndGetsTheNamesOfTheModel) {
  for (const OptionRows& rows : {OptionRows{}, OptionRows{{"optimization_level", "0"}},
                                 OptionRows{{"keep_original_weights", "true"}}}) {
    for (const auto& [what, change] : other_names()) {
      Names names;
      Cache cache(16 << 20);
      EXPECT_FALSE(built_with(program_of(names), &cache, rows).report.is_from_cache);
      change(names);
      const BuiltEngine found = built_with(program_of(names), &cache, rows);
      EXPECT_TRUE(found.report.is_from_cache) << what;
      EXPECT_EQ(file_of(*found.engine), file_of(*built_with(program_of(names), nullptr, rows).engine))
          << what;
      ASSERT_FALSE(found.engine->sources.empty());
      EXPECT_NE(found.engine->sources[0].data, nullptr) << what;
    }
  }
}

TEST(EngineEntry, IsFoundWhateverTheOrderOfIndependentCalls) {
  Cache cache(16 << 20);
  const Names names;
  built_with(program_of(names, true), &cache);
  const BuiltEngine found = built_with(program_of(names), &cache);
  EXPECT_TRUE(found.report.is_from_cache);
  std::map<std::string, std::string> lines;  // of each call, whatever stands first in the table
  const BuiltEngine fresh = built_with(program_of(names), nullptr);
  for (const NodeRecord& node : fresh.engine->nodes) lines[node.name] = node.source;
  for (const NodeRecord& node : found.engine->nodes) EXPECT_EQ(lines.at(node.name), node.source);
  EXPECT_EQ(found.engine->nodes.size(), lines.size());
}

TEST(EngineEntry, IsNotFoundByAnotherStructure) {
  const std::map<std::string, std::function<void(aten::Program&)>> changes = {
      {"an operator", [](auto& p) { p.graph.nodes[3].target = "aten.mul.Tensor"; }},
      {"an edge",
       [](auto& p) {
         std::swap(p.graph.nodes[4].arguments[0].argument, p.graph.nodes[4].arguments[1].argument);
       }},
      {"which weight a call reads",
       [](auto& p) { p.graph.nodes[2].arguments[1].argument = {aten::ValueId{1}}; }},
      {"a weight that is a constant", [](auto& p) { p.graph.inputs[1].kind = aten::InputKind::kConstant; }},
      {"a range", [](auto& p) { p.graph.symbols["s7"].range.max = 17; }},
      {"a typical size", [](auto& p) { p.graph.symbols["s7"].typical = 5; }},
      {"an output", [](auto& p) { p.graph.outputs.push_back({.value = {aten::ValueId{6}}}); }},
      {"the value of a constant",
       [](auto& p) {
         auto* values = reinterpret_cast<float*>(p.graph.inputs[3].data->view.data);
         values[kRowLength - 1] += 1;
       }},
      {"calls that became one",
       [](auto& p) {
         p.graph.nodes[3].name = "add";
         p.graph.nodes[3].source = p.graph.nodes[2].source;
       }},
  };
  for (const auto& [what, change] : changes) {
    Cache cache(16 << 20);
    built_with(program_of({}), &cache);
    aten::Program program = program_of({});
    change(program);
    const BuiltEngine other = built_with(program, &cache);
    EXPECT_FALSE(other.report.is_from_cache) << what;
    EXPECT_EQ(file_of(*other.engine), file_of(*built_with(program, nullptr).engine)) << what;
  }
}

TEST(EngineEntry, NamesDecideWhereOptionsChooseNodesByThem) {
  for (const OptionRows& rows :
       {OptionRows{{"disable_passes", "fuse@div"}}, OptionRows{{"keep_precision", "div"}}}) {
    Cache cache(16 << 20);
    built_with(program_of({}), &cache, rows);
    EXPECT_TRUE(built_with(program_of({.line = 80}), &cache, rows).report.is_from_cache);
    EXPECT_FALSE(built_with(program_of({.fourth = "quotient"}), &cache, rows).report.is_from_cache);
  }
}

TEST(EngineEntry, LargeEnginesLeaveTheMemoryToKernels) {
  Cache cache(16 << 20);
  built_with(program_of({}), &cache);
  const MemoryStore::Size before = cache.memory().size();
  Cache small(before.bytes);  // of which an engine would be more than an eighth
  built_with(program_of({}), &small);
  EXPECT_LT(small.memory().size().entries, before.entries);
  EXPECT_EQ(small.memory().size().evicted, 0u);
  EXPECT_FALSE(built_with(program_of({}), &small).report.is_from_cache);
}

TEST(EngineEntry, WhatOptionsForbidIsNeitherKeptNorFound) {
  Cache cache(16 << 20), none(0);
  built_with(program_of({}), &none);
  EXPECT_FALSE(built_with(program_of({}), &none).report.is_from_cache);
  built_with(program_of({}), &cache, {{"verify_kernels", "true"}});
  EXPECT_FALSE(built_with(program_of({}), &cache).report.is_from_cache);
  EXPECT_FALSE(built_with(program_of({}), &cache, {{"verify_kernels", "true"}}).report.is_from_cache);
  EXPECT_FALSE(built_with(program_of({}), &cache, {{"share_kernels", "false"}}).report.is_from_cache);
  EXPECT_TRUE(built_with(program_of({}), &cache).report.is_from_cache);
}

}  // namespace
}  // namespace ingot::core
