// SPDX-License-Identifier: Apache-2.0
#include "tests/importers/aten/random_calls.h"

#include <limits>

#include "tests/importers/aten/programs.h"

namespace ingot::core::aten::test {
namespace {

constexpr DType kDTypes[] = {DType::kF32, DType::kI64,  DType::kBool, DType::kF64, DType::kI32, DType::kU8,
                             DType::kF16, DType::kBF16, DType::kI8,   DType::kU16, DType::kC64, DType::kE4M3};

// Inputs that often fit each other: one size in all dims, or one shape for all.
class Inputs {
 public:
  Inputs(std::minstd_rand& random, bool mild)
      : random_(random), mild_(mild), size_(common_size()), rank_(below(6)) {}

  void add(ProgramWriter& writer) {
    writer.program.graph.symbols["s"] = {.range = {1, 8}, .typical = 2, .upper_bound = {}};
    writer.input("sized", {Dim::symbol("s")});
    sizes = {writer.integer("size", Dim::symbol("s"))};
    for (size_t i = 0; i < 4; ++i) {
      const DType dtype = !mild_ && below(3) == 0 ? kDTypes[below(std::size(kDTypes))] : kDTypes[i == 1];
      shapes.push_back(shape());
      tensors.push_back(writer.input("x" + std::to_string(i), {}, dtype));
      writer.program.graph.values.back().tensor.shape = shapes.back();
    }
  }
  Shape shape() {
    Shape made(below(2) == 0 ? rank_ : below(mild_ ? 5 : 6), size_);
    for (Dim& dim : made) {
      if (!mild_ && below(6) == 0) dim = common_size();
    }
    return made;
  }
  DType dtype() { return below(2) == 0 ? DType::kF32 : kDTypes[below(std::size(kDTypes))]; }

  std::vector<ValueId> tensors, sizes;
  std::vector<Shape> shapes;

 private:
  size_t below(size_t count) { return random_() % count; }
  Dim common_size() {
    static const Dim kSizes[] = {1, 2, 3, 4, 6, 8, 0, Dim::symbol("s"), int64_t{1} << 33, INT64_MAX};
    return kSizes[below(!mild_ && below(4) == 0 ? std::size(kSizes) : 6)];
  }

  std::minstd_rand& random_;
  bool mild_;
  Dim size_;
  size_t rank_;
};

// One value a result; a list has any number.
void add_results(ProgramWriter& writer, Node& node, const std::vector<SchemaType>& types, Inputs& inputs,
                 std::minstd_rand& random) {
  for (const SchemaType& type : types) {
    for (size_t count = type.is_list ? random() % 4 : 1; count > 0; --count) {
      Value value{.name = "result" + std::to_string(node.outputs.size())};
      if (type.kind != ArgumentKind::kTensor) value.kind = ValueKind::kSymInt;
      value.tensor.dtype = inputs.dtype();
      value.tensor.shape =
          random() % 2 == 0 ? inputs.shapes[random() % inputs.shapes.size()] : inputs.shape();
      writer.program.graph.values.push_back(value);
      node.outputs.emplace_back(static_cast<ValueId>(writer.program.graph.values.size() - 1));
    }
  }
}

}  // namespace

int64_t RandomCalls::integer() {
  static constexpr int64_t kNumbers[] = {0,         1,
                                         2,         3,
                                         4,         5,
                                         8,         -1,
                                         -2,        1 << 20,
                                         1L << 33,  1L << 60,
                                         -3,        -7,
                                         INT32_MAX, INT64_MAX - 1,
                                         INT64_MAX, INT64_MIN + 1,
                                         INT64_MIN};
  if (mild_) return below(3) == 0 ? static_cast<int64_t>(below(4)) : 1;
  return kNumbers[below(below(4) == 0 ? std::size(kNumbers) : 9)];
}

double RandomCalls::real() {
  static constexpr double kNumbers[] = {1e300, -1e300, std::numeric_limits<double>::infinity(),
                                        std::numeric_limits<double>::quiet_NaN(), -0.0};
  return !mild_ && below(8) == 0 ? kNumbers[below(std::size(kNumbers))]
                                 : 0.5 * static_cast<double>(integer());
}

std::string RandomCalls::text() {
  static constexpr const char* kTexts[] = {
      "mean",    "sum",       "none",    "tanh",   "floor", "trunc",    "ij,jk->ik", "i...",
      "same",    "valid",     "reflect", "linear", "fro",   "ij",       "amax",      "prod",
      "reflect", "replicate", "->",      "",       "aa->a", "circular", "nearest",   "...ij,...jk->...ik",
      "xy",      "right"};
  return kTexts[below(std::size(kTexts))];
}

Argument RandomCalls::tensor() {
  return tensors_.empty() ? Argument{None{}} : Argument{tensors_[below(below(2) == 0 ? 1 : tensors_.size())]};
}

Argument RandomCalls::size() {
  if (!sizes_.empty() && below(12) == 0) return {sizes_[below(sizes_.size())]};
  return {integer()};
}

Argument RandomCalls::element(const SchemaType& type) {
  switch (type.kind) {
    case ArgumentKind::kTensor:
      return type.has_optional_elements && below(3) == 0 ? Argument{None{}} : tensor();
    case ArgumentKind::kInteger:
      return size();
    case ArgumentKind::kFloat:
      return {real()};
    case ArgumentKind::kBool:
      return {below(mild_ ? 4 : 2) == 0};
    case ArgumentKind::kScalar:
      return below(8) == 0 ? Argument{true} : below(2) == 0 ? Argument{real()} : size();
    case ArgumentKind::kString:
      return {text()};
    case ArgumentKind::kDType:
      return {kDTypes[below(std::size(kDTypes))]};
    case ArgumentKind::kLayout:
    case ArgumentKind::kMemoryFormat:
    case ArgumentKind::kDevice:
    case ArgumentKind::kGenerator:
      break;
  }
  return {None{}};
}

Argument RandomCalls::value(const SchemaType& type) {
  if (type.is_optional && below(3) == 0) return {None{}};
  if (!type.is_list) return element(type);
  ArgumentList items;
  const size_t count = type.list_size > 0 && below(2) == 0 ? static_cast<size_t>(type.list_size) : below(7);
  const bool equal = below(2) == 0;
  while (items.size() < count) items.push_back(equal && !items.empty() ? items[0] : element(type));
  return {items};
}

std::vector<NamedArgument> RandomCalls::arguments(const Schema& schema) {
  std::vector<NamedArgument> made;
  for (const SchemaArgument& argument : schema.arguments) {
    if (argument.default_value && below(2) == 0) continue;
    if (!mild_ && below(64) == 0) continue;
    made.push_back({argument.name, value(argument.type)});
  }
  return made;
}

std::vector<NamedArgument> RandomCalls::positional_arguments() {
  static constexpr const char* kNames[] = {"", "", "self", "dim", "a", "dtype"};
  std::vector<NamedArgument> made;
  for (size_t count = below(4); count > 0; --count) {
    const size_t name = below(std::size(kNames));
    const ArgumentKind kind = name == 5                    ? ArgumentKind::kDType
                              : name == 4 || below(4) == 0 ? ArgumentKind::kTensor
                                                           : ArgumentKind::kScalar;
    made.push_back({kNames[name], value({.text = "", .kind = kind})});
  }
  return made;
}

Program random_program(const std::string& target, std::minstd_rand& random) {
  ProgramWriter writer;
  const bool mild = random() % 2 == 0;
  Inputs inputs(random, mild);
  inputs.add(writer);
  RandomCalls calls(random, mild, inputs.tensors, inputs.sizes);
  const auto schema = find_schema(target);
  Node node{.target = target, .name = "call"};
  node.source = {.file = "model.py", .line = 1, .function = "forward"};
  node.arguments = schema ? calls.arguments(*schema) : calls.positional_arguments();
  SchemaType any;
  if (random() % 2 == 0) any.kind = ArgumentKind::kInteger;
  add_results(writer, node, schema ? schema->returns : std::vector{any}, inputs, random);
  for (const auto& output : node.outputs) {
    if (writer.program.graph.values[*output].kind == ValueKind::kTensor) writer.output(*output);
  }
  writer.program.graph.nodes.push_back(std::move(node));
  return std::move(writer.program);
}

}  // namespace ingot::core::aten::test
