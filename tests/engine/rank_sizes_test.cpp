// SPDX-License-Identifier: Apache-2.0
// Engine files with sizes that depend on the rank.
#include <gmock/gmock.h>

#include "engine/engine_file.h"
#include "support/error.h"
#include "tests/engine/engines.h"

namespace ingot::core {
namespace {

using ::testing::HasSubstr;

EngineData engine_by_rank(const RankSizes& table) {
  EngineData engine = testing::small_engine();
  engine.main.symbols["r"] = {.range = {0, 8}, .typical = 8, .upper_bound = {}, .by_rank = table};
  return engine;
}

const RankSizes kTable{.axes = {{"tp", 2}, {"mesh dp", 2}}, .sizes = {8, 8, 7, 0}};

std::vector<std::byte> bytes_of_file(const EngineData& engine) {
  std::vector<std::byte> bytes;
  write_engine(engine, [&](Bytes part) { bytes.insert(bytes.end(), part.begin(), part.end()); });
  return bytes;
}

std::shared_ptr<const EngineFile> file_of_ranks(const std::vector<std::byte>& bytes,
                                                std::string_view cpu = "") {
  return EngineFile::open(Bytes(bytes), nullptr, Checksums::kVerify, cpu);
}

// Of one level or several: their format is one that earlier readers reject by its number.
TEST(RankSizes, AreInFiles) {
  const auto make = [] { return engine_by_rank(kTable); };
  for (const EngineData& engine : {make(), testing::engine_of_levels({"x86-64-v3", "aarch64"}, make)}) {
    const std::vector<std::byte> bytes = bytes_of_file(engine);
    const auto file = file_of_ranks(bytes, engine.other_levels.empty() ? "" : "x86-64-v3");
    EXPECT_EQ(file->format(), kRanksFormatVersion);
    EXPECT_EQ(file->data().main.symbols.at("r").by_rank, kTable);
    EXPECT_EQ(bytes_of_file(file->data()), bytes);
    EXPECT_EQ(file->data().other_levels.size(), engine.other_levels.size());
  }
}

TEST(RankSizes, HaveOneSizePerRankWithinTheRange) {
  const auto refusal = [](const RankSizes& table) {
    const std::vector<std::byte> bytes = bytes_of_file(engine_by_rank(table));
    try {
      file_of_ranks(bytes);
    } catch (const UserError& error) {
      return std::string(error.details().code) + " " + error.details().message;
    }
    return std::string();
  };
  EXPECT_EQ(refusal(kTable), "");
  constexpr const char* kOthers = "a symbol has a table of other sizes than its groups";
  EXPECT_THAT(refusal({.axes = {{"tp", 2}}, .sizes = {8, 8, 7}}), HasSubstr(kOthers));
  EXPECT_THAT(refusal({.axes = {{"tp", INT64_MAX}, {"dp", 4}}, .sizes = {8, 8}}), HasSubstr(kOthers));
  EXPECT_THAT(refusal({.axes = {{"tp", 0}}, .sizes = {}}), HasSubstr(kOthers));
  EXPECT_THAT(refusal({.axes = {}, .sizes = {}}), HasSubstr("a group without its ranks"));
  EXPECT_THAT(refusal({.axes = {{"tp", 2}}, .sizes = {8, 9}}), HasSubstr("outside of its range"));
  EXPECT_THAT(refusal({.axes = {{"tp", 2}}, .sizes = {8, -1}}), HasSubstr("outside of its range"));
}

}  // namespace
}  // namespace ingot::core
