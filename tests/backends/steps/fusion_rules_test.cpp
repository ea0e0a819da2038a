// SPDX-License-Identifier: Apache-2.0
// Which kernels take what depends on no tensor.
#include "backends/steps/fusion_rules.h"

#include <gtest/gtest.h>

#include <fmt/core.h>

#include "ir/text.h"
#include "ops/ops.h"

namespace ingot::core {
namespace {

constexpr std::string_view kDTypes[] = {"f16", "bf16", "f32", "f64", "i8", "i64", "bool"};

struct Reader {
  const char* name;
  const char* node;  // reads %c; DTYPE is what the constant has
};

const Reader kReaders[] = {
    {"beside_a_tensor", "%y = equal(%x, %c) : bool[3,4]"},
    {"on_the_left", "%y = equal(%c, %x) : bool[3,4]"},
    {"chosen", "%y = select(%m, %c, %x) : DTYPE[3,4]"},
    {"joined", "%y = concat(%c2, %x) {axis=0} : DTYPE[6,4]"},
    {"reduced", "%y = reduce_maximum(%c2) {axes=[1], keep_dims=true} : DTYPE[3,1]"},
};

Graph parse(const Reader& reader, std::string_view dtype) {
  std::string text = fmt::format(
      "graph g(%x: DTYPE[3,4], %m: bool[3,4]) {{\n %c = full() {{value=2, integer=1, dtype={0}}} : DTYPE[]\n"
      " %c2 = full() {{value=2, integer=1, dtype={0}, shape=[3, 4]}} : DTYPE[3,4]\n {1}\n return %y\n}}",
      dtype, reader.node);
  for (size_t at; (at = text.find("DTYPE")) != std::string::npos;) text.replace(at, 5, dtype);
  return parse_graph(text, ops::find_op);
}

class FusedConstants : public testing::TestWithParam<Reader> {};

TEST_P(FusedConstants, AreInTheCode) {
  for (const std::string_view dtype : kDTypes) {
    if (dtype == "bool" && std::string_view(GetParam().name) == "reduced") continue;
    SCOPED_TRACE(dtype);
    const Graph graph = parse(GetParam(), dtype);
    const Node& root = *graph.outputs[0]->producer;
    for (const Value* operand : root.operands) {
      if (operand->producer == nullptr) continue;
      const FusionAnswer answer =
          may_take_producer(root, *operand->producer, [](const Node&) { return true; });
      EXPECT_TRUE(answer.yes) << answer.reason;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Readers, FusedConstants, testing::ValuesIn(kReaders),
                         [](const auto& info) { return info.param.name; });

// Templates of contractions read tiles of their operands.
TEST(ConstantsOfContractions, AreTensors) {
  const Graph graph = parse_graph(
      "graph g(%x: f32[3,4]) {\n %w = full() {value=2, shape=[5, 4]} : f32[5,4]\n"
      " %y = linear(%x, %w) : f32[3,5]\n return %y\n}",
      ops::find_op);
  const Node& root = *graph.outputs[0]->producer;
  EXPECT_FALSE(may_take_producer(root, *root.operands[1]->producer, [](const Node&) { return true; }).yes);
}

}  // namespace
}  // namespace ingot::core
