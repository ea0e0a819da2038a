// SPDX-License-Identifier: Apache-2.0
#include "engine/inspect.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/engine/engines.h"

namespace ingot::core {
namespace {

TEST(Inspect, TellsAllThatAnEngineHolds) {
  std::vector<std::byte> bytes;
  write_engine(testing::small_engine(),
               [&](Bytes part) { bytes.insert(bytes.end(), part.begin(), part.end()); });
  const auto file = EngineFile::open(Bytes(bytes), nullptr);
  const auto json = nlohmann::json::parse(inspect_json(file->data(), file.get()));
  EXPECT_EQ(json["format"], kEngineFormatVersion);
  EXPECT_EQ(json["sections"].size(), 6u);
  EXPECT_EQ(json["sections"][5]["name"], "weights");
  EXPECT_EQ(json["inputs"][0]["dims"], (std::vector<std::string>{"B", "S"}));
  EXPECT_EQ(json["inputs"][0]["ranges"][1], (std::vector<int64_t>{1, 256}));
  EXPECT_EQ(json["weights"][2]["kind"], "prepared");
  EXPECT_EQ(json["main"]["steps"][1]["kernel"], "k");
  EXPECT_EQ(json["main"]["arena_bytes"], 2 * 4 * 128 * 4);
  EXPECT_EQ(json["main"]["live_bytes"], 2 * 4 * 128 * 4);
  EXPECT_EQ(json["nodes"][0]["source"], "model.py:12 in forward");
  EXPECT_EQ(json["conditions"][0]["condition"],
            "x.shape[1] <= 256 and (x.shape[0] < 20 or x.shape[1] % 2 == 0)");
  EXPECT_EQ(json["conditions"][0]["source"], "model.py:13 in forward");
  EXPECT_EQ(json["metadata"], (nlohmann::json{{"commit", "1a2b3c"}, {"note", ""}}));
  EXPECT_EQ(json["key"], "key of small");
  EXPECT_EQ(json["key_sha256"], hex(digest(as_bytes("key of small"))));
  EXPECT_EQ(json["sources"][0]["sha256"], hex(file->data().sources[0].digest));
}

TEST(Inspect, TellsTheSignature) {
  const auto json = nlohmann::json::parse(signature_json(testing::small_engine()));
  EXPECT_EQ(json["inputs"], (nlohmann::json{{{"kind", "tensor"}}, {{"kind", "integer"}, {"value", 3}}}));
  EXPECT_EQ(json["outputs"], (nlohmann::json::array({{{"kind", "tensor"}}})));
  EXPECT_EQ(json["argument_names"], std::vector<std::string>{"x"});
}

TEST(Inspect, SumsUpWhateverAProgramSaysThatItTakes) {
  Program program = testing::chain();
  for (const BufferId id : {1, 2}) program.buffers[id].as<ArenaStorage>()->bytes = INT64_MAX - 63;
  EXPECT_GT(memory_at_typical_sizes(program).live, 0);
}

TEST(Inspect, EscapesText) {
  EngineData engine = testing::small_engine();
  engine.name = "a \"name\"\n\x01\\";
  EXPECT_EQ(nlohmann::json::parse(signature_json(engine))["name"], engine.name);
}

}  // namespace
}  // namespace ingot::core
