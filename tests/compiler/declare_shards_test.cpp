// SPDX-License-Identifier: Apache-2.0
// Entries of the option `shards`: those that name parts of weights, and those that mean nothing.
#include "compiler/declare_shards.h"

#include <gmock/gmock.h>

#include "support/error.h"

namespace ingot::core {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

EngineData engine_of_two_weights() {
  EngineData engine;
  for (const char* name : {"w", "b"}) engine.sources.push_back({.name = name, .shape = {2}});
  return engine;
}

std::string shard_refusal(const std::vector<std::string>& entries) {
  EngineData engine = engine_of_two_weights();
  try {
    declare_shards(engine, entries);
  } catch (const UserError& error) {
    return std::string(error.details().code) + ": " + error.details().message;
  }
  return "";
}

TEST(DeclareShards, DividesTheWeightsThatAPatternNames) {
  EngineData engine = engine_of_two_weights();
  declare_shards(engine, {"*:0/2"});
  for (const SourceWeight& source : engine.sources) {
    ASSERT_EQ(source.shards.size(), 1) << source.name;
    EXPECT_EQ(source.shards[0].axis, 0);
    EXPECT_EQ(source.shards[0].parts, 2);
    EXPECT_EQ(source.shards[0].group, "");
  }
}

TEST(DeclareShards, KnowsPartsOfDifferentSizes) {
  EngineData engine = engine_of_two_weights();
  declare_shards(engine, {"w:0/2+2+1", "w:0/3", "w:0/2+2+1", "b:0/0+2"});  // two say nothing new
  ASSERT_EQ(engine.sources[0].shards.size(), 1);
  EXPECT_EQ(engine.sources[0].shards[0].parts, 3);
  EXPECT_THAT(engine.sources[0].shards[0].extents, ElementsAre(2, 2, 1));
  EXPECT_THAT(engine.sources[1].shards[0].extents, ElementsAre(0, 2));
  EXPECT_THAT(shard_refusal({"w:0/3+2"}), HasSubstr("axis 0 of 'w' has 2 elements, the largest part 3"));
  EXPECT_THAT(shard_refusal({"w:0/1+1"}), HasSubstr("axis 0 of 'w' has 2 elements, the largest part 1"));
  EXPECT_THAT(shard_refusal({"w:0/2+1", "w:0/1+2"}),
              HasSubstr("another entry divides 'w', and its parts differ"));
  EXPECT_THAT(shard_refusal({"w:0/2+1", "w:0/3"}),
              HasSubstr("another entry divides 'w', and its parts differ"));
  EXPECT_THAT(shard_refusal({"w:0/2", "w:0/2+1"}),
              HasSubstr("another entry divides 'w', and its parts differ"));
}

TEST(DeclareShards, RefusesEntriesThatMeanNothing) {
  for (const char* entry : {"w", "w:0", "w/2", ":0/2", "w:x/2", "w:0/", "w:-1/2", "w:0/2x", "w:0/2+",
                            "w:0/+2", "w:0/2+-1", "w:0/2++1"})
    EXPECT_THAT(shard_refusal({entry}),
                HasSubstr("INGOT-U356: shards: '" + std::string(entry) + "': it does not say"));
  EXPECT_THAT(shard_refusal({"w:0/0"}), HasSubstr("1 to 1024 parts"));
  EXPECT_THAT(shard_refusal({"v:0/2"}), HasSubstr("the program reads no weight of that name"));
  EXPECT_THAT(shard_refusal({"w:1/2"}), HasSubstr("'w' has 1 dims"));
  EXPECT_THAT(shard_refusal({"w:0/2@tp"}), HasSubstr("the program has no group 'tp'"));
  EXPECT_THAT(shard_refusal({"w:0/2", "*:0/2"}), HasSubstr("another entry divides 'w'"));
}

}  // namespace
}  // namespace ingot::core
