// SPDX-License-Identifier: Apache-2.0
// The language of composites.def. What its rows compute is compared with torch by
// tests/python/test_composites.py.
#include "importers/aten/composites/composite.h"

#include <fmt/ranges.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "importers/aten/converters/composites/evaluation.h"
#include "importers/aten/program/aten_text.h"
#include "support/error.h"
#include "tests/importers/aten/programs.h"

namespace ingot::core::aten::test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// With brackets around each operation.
std::string text_of(const Expression& expression) {
  std::vector<std::string> parts;
  for (const Expression& part : expression.parts) parts.push_back(text_of(part));
  using Kind = Expression::Kind;
  switch (expression.kind) {
    case Kind::kName:
      return expression.text;
    case Kind::kLiteral:
      return to_string(expression.literal);
    case Kind::kOperator:
      return parts.size() == 1 ? fmt::format("({} {})", expression.text, parts[0])
                               : fmt::format("({} {} {})", parts[0], expression.text, parts[1]);
    default:
      return fmt::format("{}{}({})", expression.text, static_cast<int>(expression.kind),
                         fmt::join(parts, ", "));
  }
}
std::string result_of(const std::string& expression) {
  return text_of(parse_composites("f(a, b) = " + expression + "\n").at(0).results.at(0));
}

TEST(Composites, BindAsInPython) {
  EXPECT_EQ(result_of("a + b * -a ** 2"), "(a + (b * (- (a ** 2))))");
  EXPECT_EQ(result_of("a == 0 | b"), "(a == (0 | b))");
  EXPECT_EQ(result_of("a - b - 1"), "((a - b) - 1)");
  EXPECT_EQ(result_of("not a is not None and b"), "((not (not (a is none))) and b)");
  EXPECT_EQ(result_of("not a + 1 in b"), "(not ((a + 1) in b))");
}

TEST(Composites, ListsMayLeaveOut) {
  const auto list = [](const std::string& text) {
    return parse_composites("f(a, b) = " + text + "\n").at(0).results.at(0);
  };
  EXPECT_EQ(list("[x + 1 for x in a]").parts.size(), 2);
  const Expression chosen = list("[x + 1 for x in a if x > 0 and not x in b]");
  EXPECT_EQ(chosen.text, "x");
  EXPECT_EQ(text_of(chosen.parts.at(2)), "((x > 0) and (not (x in b)))");
}

TEST(Composites, HaveKindsParametersAndSteps) {
  const auto rows = parse_composites(
      "# a comment\n"
      "whole f.Tensor(a, b) =\n"
      "  c = [a,\n"
      "    b]\n"
      "  c[0], c[1]\n"
      "local g(a) = a\n");
  ASSERT_EQ(rows.size(), 2);
  EXPECT_EQ(rows[0].kind, Composite::Kind::kWhole);
  EXPECT_EQ(rows[0].target, "aten.f.Tensor");
  EXPECT_THAT(rows[0].parameters, ElementsAre("a", "b"));
  EXPECT_EQ(rows[0].steps.at(0).name, "c");
  EXPECT_EQ(rows[0].results.size(), 2);
  EXPECT_EQ(rows[1].target, "g");
}

TEST(Composites, NameOverloadsOfLibraries) {
  const auto target = [](const std::string& name) {
    return parse_composites(name + "(a) = a\n").at(0).target;
  };
  EXPECT_EQ(target("f"), "aten.f.default");
  EXPECT_EQ(target("prims.f"), "prims.f.default");
  EXPECT_EQ(target("library.f.Tensor"), "library.f.Tensor");
}

TEST(Composites, CallOperators) {
  const Expression call = parse_composites("f(a) = op.softmax(a, 1, axis=a)\n").at(0).results.at(0);
  EXPECT_EQ(call.kind, Expression::Kind::kCall);
  EXPECT_EQ(call.text, "op.softmax");
  EXPECT_THAT(call.keywords, ElementsAre("", "", "axis"));
}

TEST(Composites, RefuseNumbersAlone) {
  ProgramWriter writer;
  writer.output(writer.call("aten.relu.default", {{int64_t{1}}}, {}));
  EXPECT_THAT([&] { import_program(writer.program); },
              testing::ThrowsMessage<UnsupportedError>(HasSubstr("numbers in place of tensors")));
}

TEST(Composites, MalformedRowsAreBugs) {
  for (const char* row :
       {"f(a) = (a\n", "f(a = a\n", "f(a) =\n", "f(a) = a b\n", "f(a) = \"a\n", "f(a) = a in\n",
        "f(a) = [x for x in a if]\n", "f(a) = [x for x in a if x else a]\n"})
    EXPECT_THROW(parse_composites(row), InternalError) << row;
}

TEST(Composites, LocalFunctionsHaveNamesOfTheirOwn) {
  std::set<std::string> names;
  for (const Composite& composite : all_composites()) {
    if (composite.kind != Composite::Kind::kLocal) continue;
    const bool is_new = names.insert(composite.target).second;
    EXPECT_TRUE(is_new && find_composite_function(composite.target) == nullptr)
        << composite.target << " is defined twice: one of the two is never used";
  }
}

TEST(Composites, ChooseBySizesThatRangesDecide) {
  ProgramWriter writer;
  writer.program.graph.symbols["s"] = {.range = {2, 8}, .typical = 4, .upper_bound = {}};
  const Dim size = Dim::symbol("s");
  const ValueId x = writer.input("x", {size});
  writer.output(writer.call("aten.hstack.default", {{ArgumentList{{x}, {x}}}}, {size + size}));
  EXPECT_THAT(results(writer.program, {{1, 2}}, {{"s", 2}}).at(0), ElementsAre(1, 2, 1, 2));
}

// Which dims are summed up is known, whatever their sizes are.
TEST(Composites, LeaveOutDimsOfAnySize) {
  ProgramWriter writer;
  writer.program.graph.symbols["s"] = {.range = {1, 8}, .typical = 4, .upper_bound = {}};
  const Dim size = Dim::symbol("s");
  const ValueId a = writer.input("a", {size, 2}), b = writer.input("b", {2, size});
  const ArgumentList last = {{int64_t{1}}}, first = {{int64_t{0}}};
  writer.output(writer.call("aten.tensordot.default", {{a}, {b}, {last}, {first}}, {size, size}));
  EXPECT_THAT(results(writer.program, {{1, 2, 3, 4}, {5, 6, 7, 8}}, {{"s", 2}}).at(0),
              ElementsAre(1 * 5 + 2 * 7, 1 * 6 + 2 * 8, 3 * 5 + 4 * 7, 3 * 6 + 4 * 8));
}

}  // namespace
}  // namespace ingot::core::aten::test
