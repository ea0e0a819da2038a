// SPDX-License-Identifier: Apache-2.0
#include <fstream>

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include "tests/api/fixtures.h"

namespace ingot::core::testing {
namespace {

using ::testing::ElementsAre;

std::vector<float> output(ingot_engine* engine, size_t index) {
  const auto context = context_of(engine);
  const float x = 9;
  const int64_t shape[] = {1, 1};
  const ingot_tensor input{const_cast<float*>(&x), INGOT_F32, 2, shape, nullptr};
  FloatOutputs outputs;
  EXPECT_EQ(code_of(ingot_context_run(context.get(), 1, &input, FloatOutputs::allocate, &outputs)), "");
  return outputs.values.at(index);
}

void refit(ingot_engine* engine, const std::vector<float>& values) {
  const char* name = "w";
  const int64_t shape[] = {static_cast<int64_t>(values.size())};
  const ingot_tensor tensor{const_cast<float*>(values.data()), INGOT_F32, 1, shape, nullptr};
  EXPECT_EQ(code_of(ingot_engine_refit(engine, 1, &name, &tensor, nullptr)),
            values.size() == 4 ? "" : "INGOT-U321");
}

TEST(Engine, DescribesItsPorts) {
  const EngineOnDisk file(echo_engine());
  const auto engine = load(file.path());
  EXPECT_EQ(ingot_engine_input_count(engine.get()), 1u);
  EXPECT_EQ(ingot_engine_output_count(engine.get()), 1u);
  EXPECT_EQ(ingot_engine_state_count(engine.get()), 0u);
  ingot_port port{};
  port.struct_size = sizeof(port);
  ASSERT_EQ(code_of(ingot_engine_input(engine.get(), 0, &port)), "");
  EXPECT_STREQ(port.name, "x");
  EXPECT_EQ(port.dtype, INGOT_F32);
  ASSERT_EQ(port.rank, 2);
  EXPECT_STREQ(port.dims[1], "S");
  EXPECT_EQ(port.min[1], 1);
  EXPECT_EQ(port.max[1], 256);
  EXPECT_EQ(code_of(ingot_engine_input(engine.get(), 1, &port)), "INGOT-U014");
}

TEST(Engine, FillsOnlyWhatAnOldCallerHas) {
  const EngineOnDisk file(echo_engine());
  const auto engine = load(file.path());
  ingot_port port{};
  EXPECT_EQ(code_of(ingot_engine_output(engine.get(), 0, &port)), "INGOT-U013");
  struct {
    ingot_port port;
    int64_t newer = 17;
  } extended{};
  extended.port.struct_size = sizeof(extended);  // a caller of a later version
  EXPECT_EQ(code_of(ingot_engine_output(engine.get(), 0, &extended.port)), "");
  EXPECT_STREQ(extended.port.name, "y");
  EXPECT_EQ(extended.port.struct_size, sizeof(extended));
  EXPECT_EQ(extended.newer, 17);
}

TEST(Engine, TellsHowItIsCalled) {
  const EngineOnDisk file(small_engine());
  const auto engine = load(file.path());
  ingot_text* text = nullptr;
  ASSERT_EQ(code_of(ingot_engine_signature(engine.get(), &text)), "");
  const auto json = nlohmann::json::parse(text_of(text));
  EXPECT_EQ(json["argument_names"], nlohmann::json({"x"}));
  EXPECT_EQ(json["inputs"], (nlohmann::json{{{"kind", "tensor"}}, {{"kind", "integer"}, {"value", 3}}}));
  EXPECT_EQ(json["origin"], "a test");
  EXPECT_EQ(ingot_engine_state_input(engine.get(), 0), -1);
  EXPECT_EQ(ingot_engine_state_input(engine.get(), 5), -1);
}

TEST(Engine, InspectsWithAndWithoutLoading) {
  const EngineOnDisk file(weight_engine());
  const auto engine = load(file.path());
  ingot_text *loaded = nullptr, *opened = nullptr;
  ASSERT_EQ(code_of(ingot_engine_inspect(engine.get(), &loaded)), "");
  ASSERT_EQ(code_of(ingot_inspect_file(file.path().c_str(), &opened)), "");
  const std::string text = text_of(loaded);
  EXPECT_EQ(text, text_of(opened));
  const auto json = nlohmann::json::parse(text);
  EXPECT_EQ(json["sections"].size(), 6u);
  EXPECT_EQ(json["weights"][0]["name"], "w");
  EXPECT_EQ(json["main"]["steps"].size(), 4u);
}

TEST(Engine, LoadsFromMemoryAndGivesItBack) {
  const EngineOnDisk file(echo_engine());
  ingot_text* bytes = nullptr;
  ASSERT_EQ(code_of(ingot_engine_save_memory(load(file.path()).get(), &bytes)), "");
  const Owned<ingot_text> memory(bytes);
  int released = 0;
  const auto release = [](void* owner) { ++*static_cast<int*>(owner); };
  ingot_engine* engine = nullptr;
  ASSERT_EQ(code_of(ingot_engine_load_memory(ingot_text_data(bytes), ingot_text_size(bytes), release,
                                             &released, nullptr, &engine)),
            "");
  EXPECT_THAT(output(engine, 0), ElementsAre(9));
  ingot_engine_free(engine);
  EXPECT_EQ(released, 1);
  EXPECT_EQ(code_of(ingot_engine_load_memory("no engine", 9, release, &released, nullptr, &engine)),
            "INGOT-U200");
  EXPECT_EQ(released, 2);
}

TEST(Engine, CopiesMemoryWhereItIsAskedTo) {
  const EngineOnDisk file(echo_engine());
  std::string bytes = read_text_file(file.path());
  int released = 0;
  const auto release = [](void* owner) { ++*static_cast<int*>(owner); };
  const ingot_load_options options{.struct_size = sizeof(options), .memory = INGOT_MEMORY_COPY};
  ingot_engine* engine = nullptr;
  ASSERT_EQ(
      code_of(ingot_engine_load_memory(bytes.data(), bytes.size(), release, &released, &options, &engine)),
      "");
  EXPECT_EQ(released, 1);
  bytes.assign(bytes.size(), '!');
  EXPECT_THAT(output(engine, 0), ElementsAre(9));
  ingot_engine_free(engine);
  EXPECT_EQ(released, 1);
}

TEST(Engine, SavesNothingOfAFileThatChanged) {
  const EngineOnDisk file(weight_engine());
  const std::string original = read_text_file(file.path()), saved = file.path("saved.ingot");
  const ingot_load_options copied{.struct_size = sizeof(copied), .memory = INGOT_MEMORY_COPY};
  const auto mapped = load(file.path()), copy = load(file.path(), &copied);
  EXPECT_THAT(output(mapped.get(), 1), ElementsAre(1, 2, 3, 4));
  std::fstream(file.path(), std::ios::in | std::ios::out | std::ios::binary)
      .seekp(-64, std::ios::end)
      .put('!');
  EXPECT_EQ(code_of(ingot_engine_save(mapped.get(), saved.c_str())), "INGOT-U211");
  EXPECT_FALSE(std::filesystem::exists(saved));
  EXPECT_EQ(
      std::distance(std::filesystem::directory_iterator(std::filesystem::path(saved).parent_path()), {}), 1);
  ingot_text* text = nullptr;
  EXPECT_EQ(code_of(ingot_engine_save_memory(mapped.get(), &text)), "INGOT-U211");
  EXPECT_EQ(text, nullptr);
  ASSERT_EQ(code_of(ingot_engine_save(copy.get(), saved.c_str())), "");
  EXPECT_EQ(read_text_file(saved), original);
  EXPECT_THAT(output(copy.get(), 1), ElementsAre(1, 2, 3, 4));
}

TEST(Engine, RefusesBadOptions) {
  const EngineOnDisk file(small_engine());
  ingot_engine* engine = nullptr;
  const auto load_with = [&](int32_t verify, int32_t trust, size_t size = sizeof(ingot_load_options),
                             int32_t memory = INGOT_MEMORY_MAP) {
    const ingot_load_options options{size, verify, trust, memory};
    const std::string code = code_of(ingot_engine_load(file.path().c_str(), &options, &engine));
    if (code.empty()) ingot_engine_free(engine);
    return code;
  };
  EXPECT_EQ(load_with(INGOT_VERIFY_FULL, INGOT_TRUST_ANY), "");
  EXPECT_EQ(load_with(7, INGOT_TRUST_ANY), "INGOT-U016");
  EXPECT_EQ(load_with(INGOT_VERIFY_LAZY, -1), "INGOT-U016");
  EXPECT_EQ(load_with(INGOT_VERIFY_LAZY, INGOT_TRUST_SIGNED), "INGOT-U222");
  EXPECT_EQ(load_with(INGOT_VERIFY_LAZY, INGOT_TRUST_ANY, 4), "INGOT-U013");
  EXPECT_EQ(load_with(INGOT_VERIFY_LAZY, INGOT_TRUST_ANY, sizeof(ingot_load_options), 2), "INGOT-U016");
  constexpr size_t kOldSize = 16;  // of a caller without the last field, whose memory may hold anything
  EXPECT_EQ(load_with(INGOT_VERIFY_LAZY, INGOT_TRUST_ANY, kOldSize, 2), "");
}

TEST(Engine, NamesTheDamagedSection) {
  const EngineOnDisk file(weight_engine());
  EXPECT_EQ(code_of(ingot_verify_file(file.path().c_str())), "");
  std::fstream stream(file.path(), std::ios::in | std::ios::out | std::ios::binary);
  stream.seekp(-60, std::ios::end);
  stream.put('!');
  stream.close();
  const Owned<ingot_status> status(ingot_verify_file(file.path().c_str()));
  EXPECT_STREQ(ingot_status_code(status.get()), "INGOT-U210");
  EXPECT_NE(std::string(ingot_status_message(status.get())).find("weights"), std::string::npos);
  EXPECT_EQ(code_of(ingot_verify_file((file.path() + "x").c_str())), "INGOT-U120");
}

TEST(Engine, RefitsAndSavesTheNewWeights) {
  const EngineOnDisk file(weight_engine());
  const auto engine = load(file.path());
  ASSERT_EQ(ingot_engine_weight_count(engine.get()), 1u);
  EXPECT_STREQ(ingot_engine_weight_name(engine.get(), 0), "w");
  EXPECT_EQ(ingot_engine_weight_name(engine.get(), 1), nullptr);
  EXPECT_THAT(output(engine.get(), 1), ElementsAre(1, 2, 3, 4));
  refit(engine.get(), {5, 6, 7, 8});
  refit(engine.get(), {5, 6, 7});  // rejected, and nothing changes
  EXPECT_THAT(output(engine.get(), 1), ElementsAre(5, 6, 7, 8));
  const std::string saved = file.path("refitted.ingot");
  ASSERT_EQ(code_of(ingot_engine_save(engine.get(), saved.c_str())), "");
  EXPECT_EQ(code_of(ingot_verify_file(saved.c_str())), "");
  EXPECT_THAT(output(load(saved).get(), 1), ElementsAre(5, 6, 7, 8));
  EXPECT_THAT(output(load(file.path()).get(), 1), ElementsAre(1, 2, 3, 4));
}

TEST(Engine, InspectsWhatItHoldsAfterARefit) {
  const EngineOnDisk file(weight_engine());
  const auto engine = load(file.path());
  const auto inspected = [](const ingot_engine* engine) {
    ingot_text* text = nullptr;
    EXPECT_EQ(code_of(ingot_engine_inspect(engine, &text)), "");
    return nlohmann::json::parse(text_of(text));
  };
  const std::string before = inspected(engine.get())["sources"][0]["sha256"];
  ingot_engine* twin = nullptr;
  ASSERT_EQ(code_of(ingot_engine_copy(engine.get(), &twin)), "");
  const Owned<ingot_engine> owned(twin);
  refit(twin, {5, 6, 7, 8});
  const auto after = inspected(twin);
  const float values[] = {5, 6, 7, 8};
  EXPECT_EQ(after["sources"][0]["sha256"], hex(digest(std::as_bytes(std::span(values)))));
  EXPECT_FALSE(after.contains("sections"));
  EXPECT_EQ(inspected(engine.get())["sources"][0]["sha256"], before);
  EXPECT_THAT(output(engine.get(), 1), ElementsAre(1, 2, 3, 4));
}

TEST(Engine, SavesOverItsOwnFile) {
  const EngineOnDisk file(weight_engine());
  const auto engine = load(file.path());
  refit(engine.get(), {8, 8, 8, 8});
  ASSERT_EQ(code_of(ingot_engine_save(engine.get(), file.path().c_str())), "");
  EXPECT_THAT(output(engine.get(), 1), ElementsAre(8, 8, 8, 8));
  EXPECT_THAT(output(load(file.path()).get(), 1), ElementsAre(8, 8, 8, 8));
}

}  // namespace
}  // namespace ingot::core::testing
