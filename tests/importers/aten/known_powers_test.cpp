// SPDX-License-Identifier: Apache-2.0
// Powers and shifts of integers that are known while a program is imported.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>

#include "tests/importers/aten/programs.h"

namespace ingot::core::aten::test {
namespace {

using testing::HasSubstr;

// The text of x * (a operation b).
std::string product_with(const std::string& operation, int64_t a, int64_t b) {
  ProgramWriter writer;
  const ValueId x = writer.input("x", {1}, DType::kI64);
  writer.program.graph.values.push_back({.name = "n", .kind = ValueKind::kSymInt});
  const auto number = static_cast<ValueId>(writer.program.graph.values.size() - 1);
  Node node{.target = operation, .name = "n", .outputs = {number}};
  node.arguments = {{"", {a}}, {"", {b}}};
  writer.program.graph.nodes.push_back(std::move(node));
  writer.output(writer.call("aten.mul.Tensor", {{x}, {number}}, {1}, DType::kI64));
  return imported_text(writer.program);
}

struct KnownPower {
  const char* operation;
  int64_t a, b;
  std::optional<int64_t> result;  // none: computed, and checked, in each run
};

TEST(KnownPowers, AreExactWithin64Bits) {
  const KnownPower cases[] = {
      {"_operator.pow", 3, 39, 4052555153018976267},
      {"_operator.pow", -3, 39, -4052555153018976267},
      {"_operator.pow", 3, 40, std::nullopt},
      {"_operator.pow", -2, 63, INT64_MIN},
      {"_operator.pow", 2, 63, std::nullopt},
      {"_operator.pow", 2, -1, std::nullopt},
      {"_operator.pow", 5, 0, 1},
      {"_operator.pow", 0, 0, 1},
      {"_operator.pow", 0, INT64_MAX, 0},
      {"_operator.pow", 1, INT64_MAX, 1},
      {"_operator.pow", -1, INT64_MAX, -1},
      {"_operator.pow", -1, INT64_MAX - 1, 1},
      {"_operator.lshift", 3, 61, 3 * (int64_t{1} << 61)},
      {"_operator.lshift", 1, 63, std::nullopt},
      {"_operator.rshift", -5, 1, -3},
      {"_operator.rshift", INT64_MIN, 62, -2},
      {"_operator.rshift", -5, 63, std::nullopt},
  };
  for (const KnownPower& each : cases) {
    SCOPED_TRACE(std::string(each.operation) + " of " + std::to_string(each.a) + " and " +
                 std::to_string(each.b));
    const std::string text = product_with(each.operation, each.a, each.b);
    EXPECT_EQ(text.find("bind_size") == std::string::npos, each.result.has_value()) << text;
    if (!each.result) continue;
    const bool is_default = *each.result == 0;
    EXPECT_THAT(text, HasSubstr(is_default ? "full() {dtype=i64}" : std::to_string(*each.result)));
  }
}

}  // namespace
}  // namespace ingot::core::aten::test
