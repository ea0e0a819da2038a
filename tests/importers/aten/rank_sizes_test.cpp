// SPDX-License-Identifier: Apache-2.0
// Numbers of which each rank has its own: they become symbols of the program, with a table.
#include <gmock/gmock.h>

#include "support/error.h"
#include "tests/importers/aten/programs.h"

namespace ingot::core::aten::test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

Argument texts(const std::vector<std::string>& names) {
  ArgumentList items;
  for (const std::string& name : names) items.push_back({name});
  return {items};
}

// The call, and the value of its number.
ValueId size_of_rank(ProgramWriter& writer, const std::string& symbol, const std::vector<std::string>& groups,
                     const std::vector<int64_t>& ranks, const std::vector<int64_t>& sizes) {
  const ValueId number = writer.integer(symbol, Dim::symbol(symbol));
  writer.program.graph.symbols[symbol] = {};
  Node node{.target = "ingot.size_of_rank.default", .name = "size_" + symbol};
  node.arguments = {{"group_names", texts(groups)}, {"ranks", list(ranks)}, {"sizes", list(sizes)}};
  node.outputs.emplace_back(number);
  writer.program.graph.nodes.push_back(std::move(node));
  return number;
}

// x[first : first + rows], of 30 rows.
ProgramWriter slice_of_rank(const std::vector<int64_t>& rows) {
  ProgramWriter writer;
  const ValueId x = writer.input("x", {30});
  const ValueId first = size_of_rank(writer, "u0", {"tp"}, {4}, {8, 0, 16, 23});
  const ValueId end = size_of_rank(writer, "u2", {"tp"}, {4}, {16, 8, 23, 30});
  size_of_rank(writer, "u1", {"tp"}, {4}, rows);
  const ValueId part = writer.call("aten.slice.Tensor", {{x}, {int64_t{0}}, {first}, {end}},
                                   {Dim::symbol("u2") - Dim::symbol("u0")});
  writer.output(part);
  return writer;
}

TEST(RankSizes, AreSymbolsWithATable) {
  const ProgramWriter writer = slice_of_rank({8, 8, 7, 7});
  const Imported imported = import_program(writer.program);
  const SymbolInfo& rows = imported.graph.symbols.at("u1");
  EXPECT_EQ(rows.range, (DimRange{7, 8}));
  EXPECT_EQ(rows.typical, 8);
  EXPECT_EQ(rows.by_rank, (RankSizes{.axes = {{"tp", 4}}, .sizes = {8, 8, 7, 7}}));
  EXPECT_FALSE(rows.upper_bound);
  EXPECT_TRUE(imported.checks.empty()) << "the slice is inside for each rank";
  std::vector<double> numbers(30);
  for (size_t i = 0; i < numbers.size(); ++i) numbers[i] = static_cast<double>(i);
  EXPECT_THAT(results(writer.program, {numbers}), ElementsAre(ElementsAre(8, 9, 10, 11, 12, 13, 14, 15)));
}

TEST(RankSizes, AreRefusedWithoutASizePerRank) {
  const auto refusal = [](const std::vector<std::string>& groups, const std::vector<int64_t>& ranks,
                          const std::vector<int64_t>& sizes) {
    ProgramWriter writer;
    const ValueId x = writer.input("x", {30});
    size_of_rank(writer, "u0", groups, ranks, sizes);
    writer.output(writer.call("aten.relu.default", {{x}}, {30}));
    try {
      import_program(writer.program);
    } catch (const Error& error) {
      return error.details().message;
    }
    return std::string();
  };
  EXPECT_EQ(refusal({"tp", "dp"}, {2, 2}, {1, 2, 3, 4}), "");
  EXPECT_THAT(refusal({"tp"}, {4}, {8, 8, 7}), HasSubstr("not one per rank"));
  EXPECT_THAT(refusal({"tp"}, {2}, {8, -1}), HasSubstr("not one per rank"));
  EXPECT_THAT(refusal({"tp"}, {0}, {}), HasSubstr("a group without ranks"));
  EXPECT_THAT(refusal({"tp"}, {2, 2}, {1, 2, 3, 4}), HasSubstr("not as many as their ranks"));
  EXPECT_THAT(refusal({}, {}, {1}), HasSubstr("not as many as their ranks"));
}

}  // namespace
}  // namespace ingot::core::aten::test
