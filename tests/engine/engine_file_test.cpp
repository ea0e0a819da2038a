// SPDX-License-Identifier: Apache-2.0
#include "engine/engine_file.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <random>

#include <fmt/core.h>

#include "engine/container.h"
#include "support/error.h"
#include "tests/engine/engines.h"
#include "tests/engine/seal.h"
#include "tests/support/long_mode.h"

namespace ingot::core {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using testing::open;
using testing::small_engine;
using testing::to_bytes;

// The verdict of `ingot verify` on these bytes; "" if they are valid.
std::string verdict(const std::vector<std::byte>& bytes) {
  try {
    open(bytes)->verify_all();
  } catch (const UserError& error) {
    return fmt::format("{} {} ({})", error.details().code, error.details().message, error.details().advice);
  }
  return "";
}

std::string_view section_at(const EngineFile& file, uint64_t offset) {
  for (const SectionInfo& section : file.sections()) {
    if (offset >= section.offset && offset < section.offset + section.length) return section.name;
  }
  return "header";
}

TEST(EngineFile, KeepsAllThatAnEngineHolds) {
  const EngineData engine = small_engine();
  const std::vector<std::byte> bytes = to_bytes(engine);
  const auto file = open(bytes);
  file->verify_all();
  const EngineData& read = file->data();
  EXPECT_EQ(read.name, engine.name);
  EXPECT_EQ(read.key, engine.key);
  EXPECT_EQ(read.signature.inputs, engine.signature.inputs);
  EXPECT_EQ(read.signature.outputs, engine.signature.outputs);
  EXPECT_EQ(read.nodes[0].source, engine.nodes[0].source);
  ASSERT_EQ(read.main.steps.size(), engine.main.steps.size());
  EXPECT_EQ(read.main.steps[1].uses, engine.main.steps[1].uses);
  EXPECT_EQ(read.main.steps[1].as<KernelStep>()->launch, engine.main.steps[1].as<KernelStep>()->launch);
  EXPECT_EQ(read.main.symbols, engine.main.symbols);
  EXPECT_EQ(read.checks, engine.checks);
  EXPECT_EQ(read.metadata, engine.metadata);
  const auto &arena = *engine.main.buffers[2].as<ArenaStorage>(),
             &copy = *read.main.buffers[2].as<ArenaStorage>();
  EXPECT_EQ(copy.above, arena.above);
  EXPECT_EQ(copy.bytes, arena.bytes);
  for (size_t id = 0; id < 3; ++id) {
    ASSERT_NE(read.weights[id].data, nullptr);
    EXPECT_EQ(
        std::memcmp(read.weights[id].data.get(), engine.weights[id].data.get(), engine.weights[id].bytes), 0);
  }
  EXPECT_EQ(std::memcmp(read.state_values[0].data.get(), engine.state_values[0].data.get(), 12), 0);
  EXPECT_EQ(read.sources[0].digest, digest({engine.sources[0].data.get(), 16}));
  EXPECT_EQ(to_bytes(read), bytes);
}

// Two weights of three blocks and a bit, which the tables of sources and of weights both name.
EngineData engine_with_large_weights(WeightsForm form) {
  EngineData engine = small_engine();
  engine.weights_form = form;
  constexpr int64_t kElements = 3 * (1 << 18) + 5;
  for (const char* name : {"a", "b"}) {
    engine.sources.push_back(
        {.name = name, .shape = {kElements}, .data = make_tensor(DType::kF32, {kElements}).data});
    std::memset(const_cast<std::byte*>(engine.sources.back().data.get()), name[0], kElements * 4);
    engine.weights.push_back({.name = name,
                              .type = testing::f32({kElements}),
                              .origin = FromSource{static_cast<uint32_t>(engine.sources.size()) - 1},
                              .data = engine.sources.back().data,
                              .bytes = kElements * 4});
    const BufferId read =
        testing::add_buffer(engine.main, name, testing::f32({kElements}),
                            WeightStorage{static_cast<uint32_t>(engine.weights.size()) - 1});
    engine.main.steps[1].uses.insert(engine.main.steps[1].uses.begin(), BufferUse{read, true, false});
  }
  return engine;
}

TEST(EngineFile, HashesEachByteOfAWeightOnce) {
  for (const WeightsForm form : {WeightsForm::kOriginal, WeightsForm::kPrepared}) {
    const EngineData engine = engine_with_large_weights(form);
    constexpr uint64_t kLarge = (3 * (1 << 18) + 5) * 4;
    // The small tensors: the source w, the constant c, a state, and results of init, if kept.
    const uint64_t to_hash = 2 * kLarge + 16 + 8 + 12 + (form == WeightsForm::kPrepared ? 16 : 0);
    uint64_t last = 0, total = 0, calls = 0;
    std::vector<std::byte> bytes;
    write_engine(
        engine, [&](Bytes part) { bytes.insert(bytes.end(), part.begin(), part.end()); }, nullptr,
        [&](uint64_t done, uint64_t all) {
          EXPECT_GE(done, last);
          last = done, total = all, ++calls;
        });
    const auto file = open(bytes);
    EXPECT_EQ(last, total);
    EXPECT_EQ(total, to_hash + file->sections().back().length);
    EXPECT_GT(calls, 6u);
    file->verify_all();
    EXPECT_EQ(file->data().sources[2].digest, digest({engine.sources[2].data.get(), kLarge}));
  }
}

TEST(EngineFile, StopsWritingWhenTheWatchThrows) {
  const EngineData engine = engine_with_large_weights(WeightsForm::kOriginal);
  uint64_t calls = 0, all_calls = 0;
  write_engine(engine, [](Bytes) {}, nullptr, [&](uint64_t, uint64_t) { ++all_calls; });
  for (uint64_t last = 1; last < std::min<uint64_t>(all_calls, 12); ++last) {
    calls = 0;
    const auto stop = [&](uint64_t, uint64_t) {
      if (++calls == last) throw UserError("INGOT-U010", "enough");
    };
    EXPECT_THROW(write_engine(engine, [](Bytes) {}, nullptr, stop), UserError);
    EXPECT_EQ(calls, last);
  }
}

TEST(EngineFile, KeepsOriginalWeightsWhereTheEngineDoes) {
  EngineData engine = small_engine();
  engine.weights_form = WeightsForm::kOriginal;
  const auto file = open(to_bytes(engine));
  EXPECT_NE(file->data().sources[0].data, nullptr);
  EXPECT_EQ(file->data().weights[0].data, file->data().sources[0].data);
  EXPECT_EQ(file->data().weights[2].data, nullptr);
}

TEST(EngineFile, NamesTheSectionOfEveryFlippedByte) {
  std::vector<std::byte> bytes = to_bytes(small_engine());
  const auto file = open(bytes);
  std::mt19937 random(3);
  for (size_t i = 0; i < bytes.size(); i += core::test::step_of_cases(7)) {
    const std::byte before = bytes[i];
    // The header, the table and the tables of sections bit by bit, the rest with one random bit per byte.
    const bool dense = section_at(*file, i) == "header";
    for (int bit = dense ? 0 : static_cast<int>(random() % 8), end = dense ? 8 : bit + 1; bit < end; ++bit) {
      bytes[i] = before ^ static_cast<std::byte>(1 << bit);
      ASSERT_THAT(verdict(bytes), HasSubstr("section '" + std::string(section_at(*file, i)) + "'"))
          << "byte " << i;
    }
    bytes[i] = before;
  }
  EXPECT_EQ(verdict(bytes), "");
}

TEST(EngineFile, RefusesEveryTruncationAndTail) {
  const std::vector<std::byte> bytes = to_bytes(small_engine());
  for (size_t length = 0; length < bytes.size(); length += core::test::step_of_cases(7)) {
    const std::vector<std::byte> cut(bytes.begin(), bytes.begin() + static_cast<ptrdiff_t>(length));
    ASSERT_THAT(verdict(cut), HasSubstr("section '")) << length;
  }
  for (const size_t extra : {1, 64, 4096}) {
    std::vector<std::byte> longer = bytes;
    longer.resize(bytes.size() + extra);
    EXPECT_THAT(verdict(longer), HasSubstr("INGOT-U202"));
  }
}

// Changes the table and updates its checksum, so that only the rules after the checksum can reject it.
std::string verdict_of_table(const std::function<void(std::vector<Section>&)>& change) {
  std::vector<std::byte> bytes = to_bytes(small_engine());
  Container container = read_container(bytes, Checksums::kVerify);
  change(container.sections);
  const std::vector<std::byte> header = write_header(container.sections, bytes.size(), kEngineFormatVersion);
  std::ranges::copy(header, bytes.begin());
  return verdict(bytes);
}

TEST(EngineFile, RefusesSwappedDuplicatedAndOverlappingSections) {
  EXPECT_EQ(verdict_of_table([](auto&) {}), "");
  EXPECT_THAT(verdict_of_table([](auto& sections) { std::swap(sections[1], sections[2]); }),
              HasSubstr("INGOT-U203"));
  EXPECT_THAT(verdict_of_table([](auto& sections) { sections[2] = sections[1]; }), HasSubstr("INGOT-U203"));
  EXPECT_THAT(verdict_of_table([](auto& sections) { sections[1].length += 64; }), HasSubstr("INGOT-U203"));
  EXPECT_THAT(verdict_of_table([](auto& sections) { sections[1].offset -= 64; }), HasSubstr("INGOT-U203"));
  EXPECT_THAT(verdict_of_table([](auto& sections) { sections[5].length = UINT64_MAX; }),
              HasSubstr("INGOT-U203"));
  EXPECT_THAT(verdict_of_table([](auto& sections) { sections[1].content_length -= 1; }),
              HasSubstr("section '"));
  EXPECT_THAT(verdict_of_table([](auto& sections) { sections[4].digest = {}; }),
              HasSubstr("section 'images': its SHA-256"));
}

TEST(EngineFile, SwappedContentsAreDamage) {
  std::vector<std::byte> bytes = to_bytes(small_engine());
  const auto file = open(bytes);
  const SectionInfo &metadata = file->sections()[1], &programs = file->sections()[2];
  const uint64_t length = std::min(metadata.length, programs.length);
  std::swap_ranges(bytes.begin() + static_cast<ptrdiff_t>(metadata.offset),
                   bytes.begin() + static_cast<ptrdiff_t>(metadata.offset + length),
                   bytes.begin() + static_cast<ptrdiff_t>(programs.offset));
  EXPECT_THAT(verdict(bytes), HasSubstr("section 'metadata'"));
}

// A file of another format, with a header of so many bytes, whose checksum is right unless it is not
// `sealed`.
std::vector<std::byte> of_format(uint32_t format, uint64_t header = kHeaderBytes, bool sealed = true) {
  std::vector<std::byte> bytes = to_bytes(small_engine());
  std::memcpy(bytes.data() + 8, &format, sizeof(format));
  std::memcpy(bytes.data() + 24, &header, sizeof(header));
  if (!sealed) return bytes;
  std::fill_n(bytes.begin() + 32, 16, std::byte{0});
  const Checksum sum = checksum(Bytes(bytes).first(header));
  std::ranges::copy(sum, bytes.begin() + 32);
  return bytes;
}

TEST(EngineFile, NamesBothFormatsOfAnEngineOfAnotherVersion) {
  const std::string both = fmt::format("reads {} to {}", kEngineFormatVersion, kLatestFormatVersion);
  for (const uint32_t later : {kLatestFormatVersion + 1, 4000000000u}) {
    EXPECT_THAT(verdict(of_format(later)),
                AllOf(HasSubstr("INGOT-U201"), HasSubstr(fmt::format("has format {} ", later)),
                      HasSubstr(fmt::format("later than format {};", kLatestFormatVersion)), HasSubstr(both),
                      HasSubstr("with the version of Ingot that built it")));
  }
  for (const uint32_t earlier : {kEngineFormatVersion - 1, 0u}) {
    EXPECT_THAT(verdict(of_format(earlier)),
                AllOf(HasSubstr("INGOT-U201"), HasSubstr(fmt::format("has format {} ", earlier)),
                      HasSubstr(fmt::format("earlier than format {};", kEngineFormatVersion)),
                      HasSubstr(both), HasSubstr("build the model again")));
  }
}

TEST(EngineFile, NamesFormatsWithOtherHeaders) {
  for (const uint64_t header : {uint64_t{48}, uint64_t{576}, uint64_t{1000}}) {
    std::vector<std::byte> bytes = of_format(kLatestFormatVersion + 1, header);
    EXPECT_THAT(verdict(bytes), HasSubstr("INGOT-U201")) << header;
    bytes.resize(header);  // as a reader sees it that has all of the header
    EXPECT_THAT(verdict(bytes), HasSubstr("INGOT-U201")) << header;
  }
}

TEST(EngineFile, ADamagedFormatIsDamage) {
  EXPECT_THAT(verdict(of_format(kLatestFormatVersion + 1, kHeaderBytes, false)), HasSubstr("INGOT-U203"));
  for (const uint64_t length : {uint64_t{0}, uint64_t{47}, UINT64_MAX})
    EXPECT_THAT(verdict(of_format(kLatestFormatVersion + 1, length, false)), HasSubstr("INGOT-U203"));
  std::vector<std::byte> bytes = of_format(kLatestFormatVersion + 1);
  bytes.resize(47);
  EXPECT_THAT(verdict(bytes), HasSubstr("INGOT-U202"));
}

TEST(EngineFile, RefusesOtherFiles) {
  const std::string text = "a text file that is not an engine";
  EXPECT_THAT(verdict({as_bytes(text).begin(), as_bytes(text).end()}), HasSubstr("INGOT-U200"));
}

TEST(EngineFile, MutatedContentBehindTheChecksumsNeverCrashes) {
  const std::vector<std::byte> bytes = to_bytes(small_engine());
  const auto file = open(bytes);
  const uint64_t begin = file->sections()[1].offset, end = file->sections()[3].offset;
  std::mt19937 random(5);
  size_t refused = 0;
  for (int i = 0; i < 20000; ++i) {
    std::vector<std::byte> mutated = bytes;
    for (size_t k = 0; k <= random() % 3; ++k)
      mutated[begin + random() % (end - begin)] = static_cast<std::byte>(random());
    try {
      EngineFile::open(Bytes(mutated), nullptr, Checksums::kIgnore);
    } catch (const UserError&) {
      ++refused;
    }
  }
  EXPECT_GT(refused, 1000u);
}

TEST(EngineFile, RefusesMetadataWithoutAKeyOrWithOneTwice) {
  EngineData engine = small_engine();
  engine.metadata = {{"", "value"}};
  EXPECT_THAT(verdict(to_bytes(engine)), HasSubstr("a metadata key is empty"));
  engine.metadata = {{"metadata_key_1", ""}, {"metadata_key_2", ""}};
  const std::vector<std::byte> bytes = to_bytes(engine);
  std::vector<std::vector<std::byte>> contents(kSectionCount);
  const Container container = read_container(bytes, Checksums::kVerify);
  for (size_t i = 0; i < kSectionCount; ++i) {
    const Bytes content = container.content(bytes, static_cast<SectionType>(i + 1));
    contents[i].assign(content.begin(), content.end());
  }
  const Bytes second = as_bytes("metadata_key_2");
  const auto found = std::ranges::search(contents[1], second);
  ASSERT_FALSE(found.empty());
  found.back() = std::byte{'1'};
  EXPECT_THAT(verdict(testing::seal(contents)), HasSubstr("a metadata key appears twice"));
}

TEST(EngineFile, RefusesSectionsThatAreNoTables) {
  const std::vector<std::byte> noise(200, std::byte{0x5A});
  for (const size_t section : {1, 2}) {
    std::vector<std::vector<std::byte>> contents(kSectionCount);
    const std::vector<std::byte> bytes = to_bytes(small_engine());
    const Container container = read_container(bytes, Checksums::kVerify);
    for (size_t i = 0; i < kSectionCount; ++i) {
      const Bytes content = container.content(bytes, static_cast<SectionType>(i + 1));
      contents[i].assign(content.begin(), content.end());
    }
    EXPECT_EQ(verdict(testing::seal(contents)), "");
    contents[section] = noise;
    const std::string expected = "malformed in section '" + std::string(kSectionNames[section]) + "'";
    EXPECT_THAT(verdict(testing::seal(contents)), HasSubstr(expected));
  }
}

// Fields that equal their default are left out of the file.
TEST(EngineFile, KeepsTheSignOfZero) {
  for (const double zero : {0.0, -0.0}) {
    EngineData engine = small_engine();
    engine.signature.inputs[1] = PlainValue(zero);
    const auto file = open(to_bytes(engine));
    const CallSlot& slot = file->data().signature.inputs[1];
    EXPECT_EQ(std::signbit(std::get<double>(std::get<PlainValue>(slot))), std::signbit(zero));
  }
}

TEST(EngineFile, RefusesTablesThatContradictThePrograms) {
  EngineData engine = small_engine();
  engine.weights[2].origin = FromInit{1};
  EXPECT_THAT(verdict(to_bytes(engine)), HasSubstr("INGOT-U206"));
  engine = small_engine();
  engine.images[0].target = "cpu:x86-64-v3";
  EXPECT_THAT(verdict(to_bytes(engine)), HasSubstr("kernel binary of another backend"));
  engine = small_engine();
  engine.images[0].code.clear();
  EXPECT_THAT(verdict(to_bytes(engine)), HasSubstr("'k' is an image without code"));
  engine = small_engine();
  engine.signature.inputs = {TensorSlot{}, TensorSlot{}, PlainValue(int64_t{3})};
  EXPECT_THAT(verdict(to_bytes(engine)), HasSubstr("differs from the program in its inputs"));
  engine = small_engine();
  engine.signature.outputs = {TensorSlot{}, TensorSlot{}};
  EXPECT_THAT(verdict(to_bytes(engine)), HasSubstr("differs from the program in its outputs"));
  engine = small_engine();
  engine.main.steps[1].nodes = {9};
  EXPECT_THAT(verdict(to_bytes(engine)), HasSubstr("not listed"));
  engine = small_engine();
  engine.checks[0].condition = parse_predicate("S < 300 & N < 4");
  EXPECT_THAT(verdict(to_bytes(engine)), HasSubstr("'N' is used by a condition on sizes, but no input, no "
                                                   "rank and no step of the main program binds it"));
}

TEST(EngineFile, StoresEqualWeightsOnce) {
  EngineData engine = small_engine();
  const size_t before = to_bytes(engine).size();
  WeightData tied = engine.weights[0];
  tied.name = "tied";
  engine.weights.push_back(tied);
  engine.main.steps[1].uses.push_back(
      {testing::add_buffer(engine.main, "tied", testing::f32({4}), WeightStorage{3}), true, false});
  const auto file = open(to_bytes(engine));
  EXPECT_EQ(file->data().weights[3].data, file->data().weights[0].data);
  EXPECT_EQ(file->sections()[5].length, open(to_bytes(small_engine()))->sections()[5].length);
  EXPECT_GE(to_bytes(engine).size(), before);
}

TEST(EngineFile, ChecksWeightsBlockByBlock) {
  EngineData engine = small_engine();
  std::vector<float> values(1 << 19, 1.5f);
  engine.weights.push_back({.name = "large",
                            .type = testing::f32({1 << 19}),
                            .origin = FromSource{1},
                            .data = testing::bytes_of(values),
                            .bytes = 1 << 21});
  engine.sources.push_back({.name = "large", .shape = {1 << 19}, .data = engine.weights.back().data});
  engine.main.steps[1].uses.push_back(
      {testing::add_buffer(engine.main, "large", testing::f32({1 << 19}), WeightStorage{3}), true, false});
  std::vector<std::byte> bytes = to_bytes(engine);
  const auto file = open(bytes);
  EXPECT_EQ(file->weight_blocks(), 3u);
  file->verify_weights(0, 3);
  bytes[file->sections()[5].offset + (1 << 20) + 5] ^= std::byte{1};
  const auto damaged = open(bytes);
  EXPECT_NO_THROW(damaged->verify_weights(0, 1));
  EXPECT_THROW(damaged->verify_weights(1, 2), UserError);
  EXPECT_THAT(verdict(bytes), HasSubstr("block 1"));
}

}  // namespace
}  // namespace ingot::core
