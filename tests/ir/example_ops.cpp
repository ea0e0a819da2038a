// SPDX-License-Identifier: Apache-2.0
#include "tests/ir/example_ops.h"

#include "ir/graph.h"
#include "ops/ops.h"
#include "support/error.h"

namespace ingot::core::example {
namespace {

struct Settings {
  bool flag = false;
  int64_t count = 3;
  double rate = 0.5;
  std::string label;
  DType dtype = DType::kF32;
  Dim size = 1;
  std::vector<int64_t> axes;
  std::vector<double> scales;
  std::vector<Dim> shape;
  Layout layout;
  static constexpr auto fields() {
    return std::tuple{Field{"flag", &Settings::flag},   Field{"count", &Settings::count},
                      Field{"rate", &Settings::rate},   Field{"label", &Settings::label},
                      Field{"dtype", &Settings::dtype}, Field{"size", &Settings::size},
                      Field{"axes", &Settings::axes},   Field{"scales", &Settings::scales},
                      Field{"shape", &Settings::shape}, Field{"layout", &Settings::layout}};
  }
};

constexpr Operand kOne[] = {{.name = "x"}};
constexpr Operand kLinear[] = {{.name = "x", .dtypes = DTypeSet::kFloating},
                               {.name = "weight", .dtypes = DTypeSet::kFloating},
                               {.name = "bias", .dtypes = DTypeSet::kFloating, .optional = true}};
constexpr Operand kMany[] = {{.name = "x", .variadic = true}};

std::vector<TensorType> infer_same(const Node& node) {
  if (node.operands.empty()) throw UserError("INGOT-T001", "nothing to join");
  return {node.operand_type(0)};
}
std::vector<TensorType> infer_two(const Node& node) { return {node.operand_type(0), node.operand_type(0)}; }
std::vector<TensorType> infer_none(const Node&) { return {}; }
std::vector<TensorType> infer_linear(const Node& node) {
  TensorType type = node.operand_type(0);
  const TensorType& weight = node.operand_type(1);
  if (type.rank() < 1 || weight.rank() != 2 || type.shape.back() != weight.shape[1]) {
    throw UserError("INGOT-T002", "the shapes do not fit");
  }
  type.shape.back() = weight.shape[0];
  return {type};
}

}  // namespace

constinit const Op copy = {.name = "copy", .operands = kOne, .infer = infer_same};
constinit const Op linear = {.name = "linear", .operands = kLinear, .infer = infer_linear};
constinit const Op halves = {.name = "halves", .operands = kOne, .infer = infer_two};
constinit const Op join = {.name = "join", .operands = kMany, .infer = infer_same};
constinit const Op report = {
    .name = "report", .operands = kOne, .traits = Trait::kSideEffect, .infer = infer_none};
constinit const Op settings = {
    .name = "settings", .operands = kOne, .attributes = attribute_schema<Settings>(), .infer = infer_same};
constinit const Op branch = {.name = "branch", .operands = kMany, .traits = Trait::kControlFlow};

const Op* find_op(std::string_view name) {
  for (const Op* op : {&copy, &linear, &halves, &join, &report, &settings, &branch}) {
    if (op->name == name) return op;
  }
  for (const Op* op : {&ops::constant, &ops::fused, &ops::state, &ops::weight}) {
    if (op->name == name) return op;
  }
  return nullptr;
}

Graph parse(std::string_view text) { return parse_graph(text, find_op); }

}  // namespace ingot::core::example
