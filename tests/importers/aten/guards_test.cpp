// SPDX-License-Identifier: Apache-2.0
#include "importers/aten/program/guards.h"

#include <gmock/gmock.h>

#include "importers/aten/import.h"
#include "importers/aten/program/guard_parser.h"
#include "support/error.h"

namespace ingot::core::aten::test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

Dim symbol(const char* name) { return Dim::symbol(name); }

// x: [S, 4], y: [T, 4], xs[0]: [U], pair.left: [V], pair.pairs['a'].right: [W], all symbols of 0 or more.
Program program_of(std::vector<std::string> guards = {}) {
  Program program;
  const auto add = [&](const std::string& name, std::vector<Dim> shape) {
    const auto id = static_cast<ValueId>(program.graph.values.size());
    program.graph.values.push_back({.name = name, .kind = ValueKind::kTensor, .tensor = {.shape = shape}});
    program.graph.inputs.push_back({.value = id, .kind = InputKind::kUser, .name = name});
  };
  add("x", {symbol("S"), 4});
  add("y", {symbol("T"), 4});
  add("xs_0", {symbol("U")});
  add("pair_left", {symbol("V")});
  add("pair_pairs_a_right", {symbol("W")});
  for (const char* name : {"S", "T", "U", "V", "W"}) program.graph.symbols[name].range = {0, 64};
  program.guards = std::move(guards);
  return program;
}

std::string condition(const std::string& text) { return to_string(parse_guard(text, program_of().graph)); }

TEST(Guards, ReadTorchsConditions) {
  const std::pair<const char*, const char*> cases[] = {
      {"(L['x'].size()[0] % 2) == 0", "mod(S, 2) == 0"},
      {"L['y'].size()[0]*L['x'].size()[0] > 20", "20 < S*T"},
      {"L['x'].size()[0] >= L['y'].size()[0]", "T <= S"},
      {"L['xs'][0].size()[0] != L['x'].size()[1]", "U != 4"},
      {"L['pair'].left.size()[0] == L['pair'].pairs['a'].right.shape[0]", "V == W"},
      {"2 <= L['x'].size()[0] <= 16", "2 <= S & S <= 16"},
      {"not (L['x'].size()[0] == 3 or L['x'].size()[0] < 2)", "S != 3 & 2 <= S"},
      {"math.trunc(0.5*torch.sym_float(L['x'].size()[0])) == 16", "floordiv(S, 2) == 16"},
      {"L['x'].size()[0] / 4 < 2.5", "2*S < 20"},
      {"max(L['x'].size()[0], 3) == min(7, L['y'].size()[0])", "max(S, 3) == min(T, 7)"},
      {"((4 + (-1)*(L['x'].size()[0] % 4)) % 4) != 0", "mod(-S, 4) != 0"},
      {"L['x'].size()[0]**2 // 3 == S", "floordiv(S*S, 3) == S"},
      {"-2 < L[\"x\"].shape[0]", "-2 < S"}};
  for (const auto& [text, expected] : cases) EXPECT_EQ(condition(text), expected) << text;
}

TEST(Guards, ThatEnginesCannotCheckAreToldApart) {
  for (const char* text : {"math.trunc(torch.sym_float(L['x'].size()[0]) ** 0.5) == 2",
                           "L['x'].stride()[0] == 4",
                           "L['x'].storage_offset() == 0",
                           "L['pair'].left.stride()[0] == 1",
                           "L['pair'].other.size()[0] == 1",
                           "L['pair'].size()[0] == 1",
                           "L['pair']..left.size()[0] == 1",
                           "L['pair'].",
                           "L['z'].size()[0] == 4",
                           "L['x'].size()[2] == 4",
                           "L['n'] == 5",
                           "L['x'].size()[0] % 0 == 1",
                           "s99 == 4",
                           "f(L['x'].size()[0]) == 4",
                           "L['x'].size()[0]",
                           "",
                           "(",
                           "L[",
                           "L['x'].size()[0] == ",
                           "L['x'].size()[99999999999999999999] == 1",
                           "1 if True else 2",
                           "9223372036854775807 * 2 == L['x'].size()[0]"})
    EXPECT_THROW(condition(text), UnsupportedError) << text;
  EXPECT_THROW(condition(std::string(5000, '(')), UnsupportedError);
  EXPECT_THROW(condition(std::string(5000, '-') + "1 == 1"), UnsupportedError);
}

TEST(Guards, OfNamesThatTwoInputsMayHaveAreNotRead) {
  Program program = program_of();
  program.graph.inputs[1].name = "xs_0_1";
  EXPECT_THROW(parse_guard("L['xs'][0].size()[0] == 4", program.graph), UnsupportedError);
  program.graph.inputs[1].name = "x_1";
  EXPECT_EQ(to_string(parse_guard("L['x'].size()[0] == 4", program.graph)), "S == 4");
}

std::vector<std::string> kept(std::vector<std::string> guards) {
  std::vector<std::string> texts;
  for (const SizeCheck& check : guard_checks(program_of(std::move(guards))))
    texts.push_back(to_string(check.condition) + (check.source.empty() ? "" : " -- " + check.source));
  return texts;
}

TEST(Guards, ThatOnlySpecializeAreLeftOut) {
  EXPECT_THAT(kept({"L['x'].size()[0] != 1", "L['x'].size()[0] >= 2"}), IsEmpty());
  EXPECT_THAT(kept({"L['x'].size()[0]*L['y'].size()[0] != 1"}), IsEmpty());
  EXPECT_THAT(kept({"4*L['x'].size()[0] >= 2"}), IsEmpty());
  EXPECT_THAT(kept({"L['x'].size()[0] != 3"}), ElementsAre("S != 3"));
  EXPECT_THAT(kept({"L['x'].size()[0] // 4 != 1"}), ElementsAre("floordiv(S, 4) != 1"));
}

TEST(Guards, AreTheUsersWhereALineOfTheModelAsksForThem) {
  const std::string guard = "L['x'].size()[0] // 4 != 1",
                    by_torch = "(S // 4) != 1  # torch fake_impls.py:9 in infer_size",
                    by_layout = "(S // 4) != 1  # layout __init__.py:285 in check_contiguous",
                    by_user = "(S // 4) != 1  # user model.py:7 in forward";
  EXPECT_THAT(kept({guard, by_torch}), IsEmpty());
  EXPECT_THAT(kept({guard, by_layout, by_torch}), IsEmpty());
  EXPECT_THAT(kept({guard, by_torch, by_user}), ElementsAre("floordiv(S, 4) != 1 -- model.py:7 in forward"));
  EXPECT_THAT(kept({by_user}), IsEmpty());
  const std::string parity = "(L['x'].size()[0] % 2) == 0";
  EXPECT_THAT(kept({parity, "S % 2 == 0  # torch ops.py:1 in call"}), ElementsAre("mod(S, 2) == 0"));
  EXPECT_THAT(kept({parity, "S % 2 == 0  # layout ops.py:1 in call"}), IsEmpty());
}

TEST(Guards, ThatCannotBeCheckedKeepTheProgramOut) {
  const Program program = program_of({"L['x'].stride()[0] == 4"});
  try {
    import_program(program);
    FAIL();
  } catch (const UnsupportedError& error) {
    EXPECT_EQ(error.details().code, "INGOT-N524");
    EXPECT_THAT(error.details().message, HasSubstr("L['x'].stride()[0] == 4"));
  }
}

}  // namespace
}  // namespace ingot::core::aten::test
