// SPDX-License-Identifier: Apache-2.0
#include "engine/levels.h"

#include <gmock/gmock.h>

#include <cmath>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "engine/container.h"
#include "engine/engine_file.h"
#include "engine/inspect.h"
#include "engine/platforms.h"
#include "engine/signature.h"
#include "support/error.h"
#include "tests/engine/engines.h"

namespace ingot::core {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using testing::engine_of_levels;
using ::testing::HasSubstr;
using testing::small_engine;

using LevelBytes = std::vector<std::byte>;
const std::vector<std::string> kThree = {"x86-64-v3", "aarch64", "x86-64-v4+vnni"};

LevelBytes file_of(const EngineData& engine) {
  LevelBytes bytes;
  write_engine(engine, [&](Bytes part) { bytes.insert(bytes.end(), part.begin(), part.end()); });
  return bytes;
}

std::shared_ptr<const EngineFile> opened_at(const LevelBytes& bytes, std::string_view cpu = {}) {
  return EngineFile::open(Bytes(bytes), nullptr, Checksums::kVerify, cpu);
}

template <typename Function>
std::string refusal_of(Function&& function) {
  try {
    function();
  } catch (const UserError& error) {
    return error.what();
  }
  return "";
}

std::string verdict_on(const LevelBytes& bytes) {
  return refusal_of([&] { opened_at(bytes)->verify_all(); });
}

std::vector<std::string> level_names(const EngineData& engine) {
  std::vector<std::string> result;
  for (const EngineData* level : levels_of(engine)) result.emplace_back(level_name(level->target));
  return result;
}

TEST(Levels, AFileHasAllOfThemInOneOrder) {
  const LevelBytes bytes = file_of(engine_of_levels(kThree));
  EXPECT_EQ(file_of(engine_of_levels({kThree.rbegin(), kThree.rend()})), bytes);
  for (const std::string& cpu : kThree) {
    const auto file = opened_at(bytes, cpu);
    EXPECT_EQ(level_name(file->data().target), cpu);
    EXPECT_EQ(file->data().key, "key of small for " + cpu);
    EXPECT_EQ(file->format(), kLevelsFormatVersion);
    EXPECT_THAT(level_names(file->data()), ElementsAre("x86-64-v4+vnni", "x86-64-v3", "aarch64"));
    EXPECT_EQ(file_of(file->data()), bytes);
  }
}

TEST(Levels, OneLevelIsAFileAsBefore) {
  const LevelBytes bytes = file_of(small_engine());
  EXPECT_EQ(opened_at(bytes)->format(), kEngineFormatVersion);
  EXPECT_EQ(opened_at(bytes)->header().size(), kHeaderBytes);
}

TEST(Levels, EqualValuesAreStoredOnce) {
  EngineData one = small_engine();
  one.weights_form = WeightsForm::kOriginal;
  const auto length = [](const EngineData& engine) {
    return opened_at(file_of(engine))->sections().back().length;
  };
  EXPECT_EQ(length(engine_of_levels(kThree)), length(one));  // sources, constants and states
}

TEST(Levels, AnotherConstantIsStoredToo) {
  EngineData engine = engine_of_levels(kThree);
  auto other = std::make_shared<EngineData>(*engine.other_levels[0]);
  other->weights[1].data = testing::bytes_of({-5, -6});
  engine.other_levels[0] = other;
  const LevelBytes bytes = file_of(engine);
  EXPECT_EQ(verdict_on(bytes), "");
  const auto constant = [&](std::string_view cpu) {
    return *reinterpret_cast<const float*>(opened_at(bytes, cpu)->data().weights[1].data.get());
  };
  EXPECT_EQ(constant(kThree[0]), 5);
  EXPECT_EQ(constant(kThree[1]), -5);
}

TEST(Levels, TheBestThatThisMachineHasIsUsed) {
  const std::string here = to_string(host_cpu_features());
  const auto used = [](std::vector<std::string> cpus) {
    return std::string(level_name(opened_at(file_of(engine_of_levels(cpus)))->data().target));
  };
  const std::string foreign = here == "aarch64" ? "x86-64-v3" : "aarch64";
  EXPECT_EQ(used({foreign, here}), here);
  EXPECT_EQ(used({here, foreign}), here);
  const std::string everything = "x86-64-v4+vnni+bf16+fp16+amx-tile+amx-bf16+amx-int8";
  if (here != everything) {
    EXPECT_EQ(used({everything, here}), here);
  }
  if (here != "x86-64-v3" && here != "aarch64") {
    EXPECT_EQ(used({"x86-64-v3", here}), here);
  }
}

TEST(Levels, AnotherThanTheFileHasIsAnError) {
  const LevelBytes bytes = file_of(engine_of_levels(kThree));
  EXPECT_THAT(refusal_of([&] { opened_at(bytes, "x86-64-v4"); }),
              AllOf(HasSubstr("INGOT-U220"), HasSubstr("x86-64-v4+vnni, x86-64-v3 or aarch64"),
                    HasSubstr("'x86-64-v4' was asked for")));
  EXPECT_THAT(refusal_of([&] { opened_at(bytes, "x86-64-v9"); }), HasSubstr("INGOT-U121"));
}

TEST(Levels, EveryDamagedSectionIsNamed) {
  LevelBytes bytes = file_of(engine_of_levels(kThree));
  const auto expect_named = [&](uint64_t at, const std::string& section) {
    bytes[at] ^= std::byte{0x10};
    ASSERT_THAT(verdict_on(bytes), HasSubstr("section '" + section + "'")) << at;
    bytes[at] ^= std::byte{0x10};
  };
  for (size_t at = 0; at < header_bytes(kThree.size()); ++at) expect_named(at, "header");
  const Container container = read_container(bytes, Checksums::kVerify);
  ASSERT_EQ(container.sections.size(), section_count(kThree.size()));
  constexpr uint64_t kPaddingStride = 509;
  for (const Section& section : container.sections) {
    for (uint64_t i = 0; i < section.length; i += i < section.content_length ? 1 : kPaddingStride)
      expect_named(section.offset + i, section.name);
  }
}

TEST(Levels, EveryLengthIsRefused) {
  const LevelBytes bytes = file_of(engine_of_levels(kThree));
  for (size_t length = 0; length < bytes.size(); length += length < 4096 ? 1 : 251)
    ASSERT_THAT(verdict_on(LevelBytes(bytes.begin(), bytes.begin() + static_cast<ptrdiff_t>(length))),
                HasSubstr("section '"))
        << length;
}

TEST(Levels, SectionsOfOtherLevelsAreRefused) {
  LevelBytes bytes = file_of(engine_of_levels(kThree));
  Container container = read_container(bytes, Checksums::kVerify);
  const auto is_refused = [&](size_t first, size_t second) {
    std::vector<Section> sections = container.sections;
    std::swap(sections[first], sections[second]);
    LevelBytes changed = bytes;
    std::ranges::copy(write_header(sections, bytes.size(), kLevelsFormatVersion), changed.begin());
    return !verdict_on(changed).empty();
  };
  for (size_t i = 0; i < container.sections.size(); ++i) {
    for (size_t j = i + 1; j < container.sections.size(); ++j) EXPECT_TRUE(is_refused(i, j)) << i << " " << j;
  }
}

// What the writer writes of levels that are not of one model.
TEST(Levels, TheyHaveToBeOfOneModel) {
  const auto verdict_of = [](const std::function<void(EngineData&)>& change) {
    EngineData engine = engine_of_levels({"x86-64-v4", "x86-64-v3"});
    auto other = std::make_shared<EngineData>(*engine.other_levels[0]);
    change(*other);
    engine.other_levels[0] = other;
    return verdict_on(file_of(engine));
  };
  EXPECT_EQ(verdict_of([](EngineData&) {}), "");
  const std::pair<const char*, std::function<void(EngineData&)>> changes[] = {
      {"twice", [](EngineData& e) { e.target = "cpu:x86-64-v4"; }},
      {"prepared", [](EngineData& e) { e.weights_form = WeightsForm::kPrepared; }},
      {"another name", [](EngineData& e) { e.name = "large"; }},
      {"another name", [](EngineData& e) { e.metadata["commit"] = "x"; }},
      {"another name", [](EngineData& e) { e.weights_files = {"a"}; }},
      {"another signature", [](EngineData& e) { e.signature.input_tree = "?"; }},
      {"another signature", [](EngineData& e) { e.signature.inputs[1] = SizeSlot{}; }},
      {"another signature", [](EngineData& e) { e.signature.inputs[1] = PlainValue(4.0); }},
      {"another signature", [](EngineData& e) { e.signature.outputs.emplace_back(PlainValue(None{})); }},
      {"other weights", [](EngineData& e) { e.sources[0].name = "layer.v"; }},
      {"other weights", [](EngineData& e) { e.sources[0].is_saved = false; }},
      {"other inputs", [](EngineData& e) { e.main.inputs[0].name = "z"; }},
  };
  for (const auto& [says, change] : changes)
    EXPECT_THAT(verdict_of(change), AllOf(HasSubstr("INGOT-U206"), HasSubstr(says))) << says;
}

TEST(Levels, ALiteralMayBeNaN) {
  EngineData engine = engine_of_levels({"x86-64-v4", "x86-64-v3"});
  auto other = std::make_shared<EngineData>(*engine.other_levels[0]);
  engine.signature.inputs[1] = other->signature.inputs[1] = PlainValue(std::nan(""));
  engine.other_levels[0] = other;
  EXPECT_EQ(verdict_on(file_of(engine)), "");
}

TEST(Levels, ATargetThatIsNoProcessorIsRefused) {
  EngineData engine = engine_of_levels({"x86-64-v4", "x86-64-v3"});
  LevelBytes bytes = file_of(engine);
  engine.target = "null";
  EXPECT_THAT(refusal_of([&] { validate_levels({&engine, engine.other_levels[0].get()}); }),
              HasSubstr("for no processor"));
}

TEST(Levels, ASignatureCoversAllOfThem) {
  const SecretKey key = make_secret_key();
  LevelBytes bytes = file_of(engine_of_levels(kThree));
  std::ranges::copy(signed_header(*opened_at(bytes), key), bytes.begin());
  const std::vector<PublicKey> trusted = {public_key_of(key)};
  require_signature(*opened_at(bytes), trusted);
  for (const std::string& cpu : kThree) require_signature(*opened_at(bytes, cpu), trusted);
  EXPECT_EQ(verdict_on(bytes), "");
  const EngineSignature other{.key = trusted[0], .signature = {}};
  const size_t header = header_bytes(kThree.size());
  std::ranges::copy(with_signature(Bytes(bytes).first(header), other), bytes.begin());
  EXPECT_THAT(refusal_of([&] { require_signature(*opened_at(bytes), trusted); }), HasSubstr("INGOT-U222"));
}

TEST(Levels, InspectionListsThem) {
  const auto file = opened_at(file_of(engine_of_levels({"x86-64-v3", "aarch64"})), "aarch64");
  const auto json = nlohmann::json::parse(inspect_json(file->data(), file.get()));
  ASSERT_EQ(json["levels"].size(), 2u);
  EXPECT_EQ(json["levels"][0]["cpu"], "x86-64-v3");
  EXPECT_EQ(json["levels"][1]["is_used"], true);
  EXPECT_NE(json["levels"][0]["key_sha256"], json["levels"][1]["key_sha256"]);
  EXPECT_EQ(json["format"], kLevelsFormatVersion);
  EXPECT_EQ(json["sections"].size(), section_count(2));
  const auto one = nlohmann::json::parse(inspect_json(small_engine(), nullptr));
  EXPECT_TRUE(one["levels"].empty());
}

TEST(Levels, StrippingLeavesNoLevelItsWeights) {
  const EngineData stripped = without_weights(engine_of_levels(kThree));
  for (const EngineData* level : levels_of(stripped)) {
    EXPECT_EQ(level->sources[0].data, nullptr);
    EXPECT_EQ(level->weights[0].data, nullptr);
    EXPECT_NE(level->weights[1].data, nullptr);  // a constant
  }
  EXPECT_EQ(verdict_on(file_of(stripped)), "");
}

}  // namespace
}  // namespace ingot::core
