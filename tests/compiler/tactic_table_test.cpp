// SPDX-License-Identifier: Apache-2.0
#include "compiler/tactic_table.h"

#include <gmock/gmock.h>

#include "support/error.h"
#include "tests/support/temporary_folder.h"

namespace ingot::core {
namespace {

using ::testing::HasSubstr;

TacticTable table_of(int level, const std::string& tactic) {
  TacticTable table;
  table.set("some GPU", "ab12", {level, tactic, "fused[linear, gelu]"});
  return table;
}

TEST(TacticTable, IsTextThatCanBeReadAgain) {
  TacticTable table = table_of(4, "groups 64x96, 2 splits");
  table.set("another GPU", "ab12", {5, "warps", "linear"});
  EXPECT_THAT(table.text(), HasSubstr("some GPU\tab12\t4\tgroups 64x96, 2 splits\tfused[linear, gelu]\n"));
  EXPECT_EQ(TacticTable::parse(table.text(), "a").text(), table.text());
}

TEST(TacticTable, FindsWhatWasTimedOnTheSameProcessorAtTheSameLevelOrAbove) {
  const TacticTable table = table_of(4, "warps");
  ASSERT_NE(table.find("some GPU", "ab12", 4), nullptr);
  EXPECT_EQ(table.find("some GPU", "ab12", 4)->tactic, "warps");
  EXPECT_NE(table.find("", "ab12", 4), nullptr);  // no processor here: any that knows
  EXPECT_EQ(table.find("some GPU", "ab12", 5), nullptr);
  EXPECT_EQ(table.find("another GPU", "ab12", 4), nullptr);
  EXPECT_EQ(table.find("some GPU", "ab13", 4), nullptr);
}

TEST(TacticTable, KeepsTheHigherLevelWhenMerged) {
  TacticTable table = table_of(5, "old");
  table.merge(table_of(4, "lower"));
  EXPECT_EQ(table.find("some GPU", "ab12", 4)->tactic, "old");
  table.merge(table_of(5, "newer"));
  EXPECT_EQ(table.find("some GPU", "ab12", 4)->tactic, "newer");
}

TEST(TacticTable, RefusesOtherFiles) {
  const std::string header = TacticTable().text();
  for (const std::string& text :
       {std::string("kernels\n"), header + "one field\n", header + "a\tb\tfour\td\te\n",
        header + "a\tb\t4\td\te\tf\n", header + "a\tb\t4x\td\te\n"}) {
    try {
      TacticTable::parse(text, "a");
      ADD_FAILURE() << text;
    } catch (const UserError& error) {
      EXPECT_EQ(error.details().code, "INGOT-U026");
    }
  }
}

TEST(TacticFile, HasTheRecordsOfAllWhoAdd) {
  const testing::TemporaryFolder folder;
  const auto path = folder.path() / "tactics.txt";
  EXPECT_TRUE(read_tactics(path).empty());
  add_tactics(path, table_of(4, "warps"));
  TacticTable other;
  other.set("some GPU", "cd34", {4, "rows", "linear"});
  add_tactics(path, other);
  const TacticTable all = read_tactics(path);
  EXPECT_NE(all.find("some GPU", "ab12", 4), nullptr);
  EXPECT_NE(all.find("some GPU", "cd34", 4), nullptr);
}

}  // namespace
}  // namespace ingot::core
