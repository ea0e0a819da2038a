// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include <chrono>
#include <fstream>
#include <numeric>
#include <set>
#include <thread>

#include "api/runtime/handles.h"
#include "api/runtime/host_access.h"
#include "runtime/prepare.h"
#include "tests/api/fixtures.h"

namespace ingot::core::testing {
namespace {

using ::testing::ElementsAre;

const std::string kModel = INGOT_SOURCE_DIR "/tests/data/pt2/image.pt2";

struct Built {
  std::string code;  // "" for success
  Owned<ingot_engine> engine;
  std::string report;
};

class BuildTest : public ::testing::Test {
 protected:
  using Rows = std::vector<ingot_option>;

  ingot_build_options options(const Rows& rows) {
    return {.struct_size = sizeof(ingot_build_options),
            .options = rows.data(),
            .option_count = rows.size(),
            .progress = progress_,
            .user = &phases_,
            .output = output_};
  }

  Built build_file(const Rows& rows = {}, const std::string& path = kModel) {
    const ingot_build_options given = options(rows);
    return finish([&](ingot_engine** engine, ingot_text** report) {
      return ingot_build_pt2(path.c_str(), &given, engine, report);
    });
  }

  template <typename Start>
  static Built finish(Start&& start) {
    ingot_engine* engine = nullptr;
    ingot_text* report = nullptr;
    Built built;
    built.code = code_of(start(&engine, &report));
    built.engine.reset(engine);
    built.report = report == nullptr ? "" : text_of(report);
    return built;
  }

  ingot_progress progress_ = nullptr;
  const char* output_ = nullptr;
  std::vector<std::string> phases_;
};

// y = relu(x), f32[S].
Owned<ingot_builder> relu_builder(const char* target = "aten.relu.default") {
  ingot_builder* builder = nullptr;
  EXPECT_EQ(code_of(ingot_builder_create("torch 2.13.0", &builder)), "");
  EXPECT_EQ(code_of(ingot_builder_symbol(builder, "S", 1, 64, -1)), "");
  const char* dims[] = {"S"};
  ingot_value value{
      .struct_size = sizeof(ingot_value), .name = "x", .dtype = INGOT_F32, .rank = 1, .dims = dims};
  uint32_t x = 0, y = 0;
  EXPECT_EQ(code_of(ingot_builder_value(builder, &value, &x)), "");
  value.name = "relu";
  EXPECT_EQ(code_of(ingot_builder_value(builder, &value, &y)), "");
  const ingot_input input{.struct_size = sizeof(ingot_input), .value = x, .name = "x"};
  EXPECT_EQ(code_of(ingot_builder_input(builder, &input)), "");
  ingot_argument argument{.name = "", .kind = INGOT_ARGUMENT_VALUE, .integer = x};
  const int64_t output = y;
  ingot_node node{.struct_size = sizeof(ingot_node), .target = target, .name = "relu"};
  node.arguments = &argument;
  node.argument_count = 1;
  node.outputs = &output;
  node.output_count = 1;
  node.file = "model.py";
  node.line = 7;
  node.function = "forward";
  EXPECT_EQ(code_of(ingot_builder_node(builder, &node)), "");
  argument.integer = y;
  EXPECT_EQ(code_of(ingot_builder_output(builder, &argument, INGOT_OUTPUT_USER, nullptr)), "");
  return Owned<ingot_builder>(builder);
}

TEST_F(BuildTest, ReportsWhatItDid) {
  const Built built = build_file({{"backend", "null"}});
  ASSERT_EQ(built.code, "");
  const auto report = nlohmann::json::parse(built.report);
  EXPECT_GT(report["phases"].size(), 2u);
  EXPECT_EQ(report["phases"][0]["name"], "read");
  double sum = 0;
  for (const auto& phase : report["phases"]) sum += phase["seconds"].get<double>();
  EXPECT_NEAR(report["seconds"].get<double>(), sum, 1e-9);
  EXPECT_GE(report["kernels"], report["distinct_kernels"]);
  EXPECT_GE(report["arena_bytes"], report["arena_lower_bound"]);
}

TEST_F(BuildTest, RefusesBadOptionsAndFiles) {
  EXPECT_EQ(build_file({{"optimisation_level", "3"}}).code, "INGOT-U001");
  EXPECT_EQ(build_file({{"optimization_level", "9"}}).code, "INGOT-U002");
  EXPECT_EQ(build_file({{"backend", "abacus"}}).code, "INGOT-U003");
  EXPECT_EQ(build_file({{"backend", nullptr}}).code, "INGOT-U012");
  EXPECT_EQ(build_file({{"backend", "null"}}, kModel + "x").code, "INGOT-U120");
  EXPECT_EQ(build_file({{"backend", "null"}}, INGOT_SOURCE_DIR "/README.md").code, "INGOT-U501");
}

TEST_F(BuildTest, IsCancelledByItsProgress) {
  progress_ = [](void* user, const char* phase, size_t done, size_t total, double) -> int32_t {
    auto& phases = *static_cast<std::vector<std::string>*>(user);
    phases.emplace_back(phase);
    EXPECT_LE(done, total);
    return phases.size() < 3 ? 1 : 0;
  };
  const Built built = build_file({{"backend", "null"}});
  EXPECT_EQ(built.code, "INGOT-U010");
  EXPECT_EQ(built.engine, nullptr);
  EXPECT_EQ(phases_.size(), 3u);
}

// No time is left out between the phases, nor counted twice: the call itself takes no less and hardly more.
TEST_F(BuildTest, PhasesAreTheWholeCall) {
  const TemporaryFolder folder;
  const std::string output = folder.path() / "phases.ingot";
  output_ = output.c_str();
  const auto start = std::chrono::steady_clock::now();
  const Built built = build_file({{"backend", "null"}});
  const std::chrono::duration<double> wall = std::chrono::steady_clock::now() - start;
  ASSERT_EQ(built.code, "");
  const auto report = nlohmann::json::parse(built.report);
  EXPECT_LE(report["seconds"].get<double>(), wall.count());
  EXPECT_EQ(report["phases"].back()["name"], "write");
  std::set<std::string> names;
  for (const auto& phase : report["phases"]) names.insert(phase["name"].get<std::string>());
  EXPECT_EQ(names.size(), report["phases"].size());
  EXPECT_EQ(code_of(ingot_verify_file(output_)), "");
}

TEST_F(BuildTest, LeavesNoFileWhenItIsCancelledWhileItWrites) {
  const TemporaryFolder folder;
  const std::string output = folder.path() / "model.ingot";
  output_ = output.c_str();
  progress_ = [](void*, const char* phase, size_t, size_t, double) -> int32_t {
    return std::string_view(phase) == "write" ? 0 : 1;
  };
  const Built built = build_file({{"backend", "null"}});
  EXPECT_EQ(built.code, "INGOT-U010");
  EXPECT_EQ(built.engine, nullptr);
  EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
}

TEST_F(BuildTest, ReadsFromMemoryWithoutKeepingIt) {
  std::ifstream stream(kModel, std::ios::binary);
  std::string bytes{std::istreambuf_iterator<char>(stream), {}};
  const Rows rows = {{"backend", "null"}};
  const ingot_build_options given = options(rows);
  const Built built = finish([&](ingot_engine** engine, ingot_text** report) {
    return ingot_build_pt2_memory(bytes.data(), bytes.size(), &given, engine, report);
  });
  ASSERT_EQ(built.code, "");
  std::ranges::fill(bytes, 'x');
  const TemporaryFolder folder;
  const std::string saved = folder.path() / "from_memory.ingot";
  EXPECT_EQ(code_of(ingot_engine_save(built.engine.get(), saved.c_str())), "");
  EXPECT_EQ(code_of(ingot_verify_file(saved.c_str())), "");
}

// Weights that are used unchanged are still in the model's file.
TEST_F(BuildTest, NoticesThatTheModelChanged) {
  const TemporaryFolder folder;
  const std::filesystem::path copy = folder.path() / "changed_model.pt2";
  std::filesystem::copy_file(INGOT_SOURCE_DIR "/tests/data/pt2/pair.pt2", copy);
  const Built built = build_file({{"backend", "null"}}, copy.string());
  ASSERT_EQ(built.code, "");
  const auto context = context_of(built.engine.get());
  std::filesystem::last_write_time(copy, std::filesystem::last_write_time(copy) + std::chrono::seconds(1));
  ingot_context* another = nullptr;
  ingot_engine* engine = nullptr;
  ingot_text* text = nullptr;
  EXPECT_EQ(code_of(ingot_context_create(built.engine.get(), &another)), "INGOT-U211");
  EXPECT_EQ(code_of(ingot_engine_copy(built.engine.get(), &engine)), "INGOT-U211");
  EXPECT_EQ(code_of(ingot_engine_save_memory(built.engine.get(), &text)), "INGOT-U211");
}

TEST_F(BuildTest, AttachesMetadata) {
  const Rows rows = {{"backend", "null"}}, entries = {{"version", "7"}, {"by", "a test"}};
  ingot_build_options given = options(rows);
  given.metadata = entries.data();
  given.metadata_count = entries.size();
  ingot_engine* engine = nullptr;
  ASSERT_EQ(code_of(ingot_builder_build(relu_builder().get(), &given, &engine, nullptr)), "");
  const Owned<ingot_engine> owner(engine);
  ASSERT_EQ(ingot_engine_metadata_count(engine), 2u);
  EXPECT_STREQ(ingot_engine_metadata_key(engine, 0), "by");
  EXPECT_STREQ(ingot_engine_metadata_value(engine, "version"), "7");
  ingot_port port{.struct_size = sizeof(port)};
  ASSERT_EQ(code_of(ingot_engine_output(engine, 0, &port)), "");
  EXPECT_STREQ(port.name, "output_0");
}

TEST_F(BuildTest, RefusesMetadataThatIsNoText) {
  const Rows rows = {{"backend", "null"}};
  for (const Rows& entries : {Rows{{"", "x"}}, {{"a", "\xFF"}}, {{"\xC0", "x"}}, {{"a", "1"}, {"a", "2"}}}) {
    ingot_build_options given = options(rows);
    given.metadata = entries.data();
    given.metadata_count = entries.size();
    ingot_engine* engine = nullptr;
    EXPECT_EQ(code_of(ingot_builder_build(relu_builder().get(), &given, &engine, nullptr)), "INGOT-U021");
    EXPECT_EQ(code_of(ingot_check_options(nullptr, &given)), "INGOT-U021");
  }
  ingot_build_options older = options(rows);  // of a caller from before metadata existed
  older.struct_size = offsetof(ingot_build_options, metadata);
  older.metadata_count = 5;
  EXPECT_EQ(code_of(ingot_check_options(nullptr, &older)), "");
}

TEST_F(BuildTest, PrintsPrograms) {
  ingot_text* text = nullptr;
  ASSERT_EQ(code_of(ingot_inspect_pt2(kModel.c_str(), &text)), "");
  EXPECT_NE(text_of(text).find("aten."), std::string::npos);
  ASSERT_EQ(code_of(ingot_builder_text(relu_builder().get(), &text)), "");
  EXPECT_NE(text_of(text).find("aten.relu.default"), std::string::npos);
}

TEST_F(BuildTest, ListsWhatItCannotRun) {
  ingot_text* text = nullptr;
  ASSERT_EQ(code_of(ingot_builder_unsupported(relu_builder().get(), &text)), "");
  EXPECT_EQ(text_of(text), "[]");
  EXPECT_EQ(ingot_imports_operator("aten.relu.default"), 1);
  EXPECT_EQ(ingot_imports_operator("aten.relu_.default"), 0);
  EXPECT_EQ(ingot_imports_operator("aten.pixel_shuffle.default"), 0);
  EXPECT_EQ(ingot_imports_operator("aten.no_such_thing.default"), 0);
  EXPECT_EQ(ingot_imports_operator(nullptr), 0);
  const auto builder = relu_builder("aten.no_such_thing.default");
  ASSERT_EQ(code_of(ingot_builder_unsupported(builder.get(), &text)), "");
  const auto json = nlohmann::json::parse(text_of(text));
  ASSERT_EQ(json.size(), 1u);
  EXPECT_EQ(json[0]["node"], 0);
  EXPECT_EQ(json[0]["target"], "aten.no_such_thing.default");
  EXPECT_NE(json[0]["source"].get<std::string>().find("model.py:7"), std::string::npos);
}

TEST_F(BuildTest, RefusesWhatItCannotRunByItsLine) {
  const auto builder = relu_builder("aten.no_such_thing.default");
  const Rows rows = {{"backend", "null"}};
  const ingot_build_options given = options(rows);
  ingot_engine* engine = nullptr;
  const Owned<ingot_status> status(ingot_builder_build(builder.get(), &given, &engine, nullptr));
  EXPECT_EQ(ingot_status_kind(status.get()), INGOT_UNSUPPORTED_ERROR);
  EXPECT_NE(std::string(ingot_status_source(status.get())).find("model.py:7"), std::string::npos);
}

TEST_F(BuildTest, NeedsEveryGraphEnded) {
  const auto builder = relu_builder();
  EXPECT_EQ(code_of(ingot_builder_begin_graph(builder.get())), "");
  ingot_engine* engine = nullptr;
  EXPECT_EQ(code_of(ingot_builder_build(builder.get(), nullptr, &engine, nullptr)), "INGOT-U017");
}

#if !INGOT_HAS_LLVM
TEST_F(BuildTest, BuildsForGpusWithoutTheCompilerForCpus) {
  for (const char* device : {"cuda:sm_80", "cuda:compute_90"}) {
    for (const char* level : {"0", "3", "5"}) {
      const Built built = build_file({{"device", device}, {"optimization_level", level}});
      EXPECT_THAT(built.code, ::testing::AnyOf("", "INGOT-D401")) << device;  // there may be no NVRTC
      EXPECT_EQ(built.code.empty(), built.engine != nullptr);
    }
  }
  EXPECT_EQ(build_file({{"device", "cuda:sm_80"}, {"backend_of", "*relu*=cpu"}}).code, "INGOT-U002");
}

TEST_F(BuildTest, SaysThatCpusNeedLlvm) {
  for (const Rows& rows : {Rows{}, Rows{{"device", "cpu:x86-64-v3"}}, Rows{{"target", "windows-x86-64"}}}) {
    const ingot_build_options given = options(rows);
    ingot_engine* engine = nullptr;
    const Owned<ingot_status> status(ingot_build_pt2(kModel.c_str(), &given, &engine, nullptr));
    EXPECT_EQ(std::string(ingot_status_code(status.get())), "INGOT-U003");
    EXPECT_NE(std::string(ingot_status_advice(status.get())).find("LLVM"), std::string::npos);
  }
}
#endif

#if INGOT_HAS_LLVM
TEST_F(BuildTest, BuildsOneBuilderTwice) {
  const auto builder = relu_builder();
  for (const char* level : {"0", "3"}) {
    const Rows rows = {{"optimization_level", level}};
    const ingot_build_options given = options(rows);
    const Built built = finish([&](ingot_engine** engine, ingot_text** report) {
      return ingot_builder_build(builder.get(), &given, engine, report);
    });
    ASSERT_EQ(built.code, "");
    const auto context = context_of(built.engine.get());
    float values[] = {-1, 2, -3};
    const int64_t shape[] = {3};
    const ingot_tensor input{values, INGOT_F32, 1, shape, nullptr};
    FloatOutputs outputs;
    EXPECT_EQ(code_of(ingot_context_run(context.get(), 1, &input, FloatOutputs::allocate, &outputs)), "");
    EXPECT_THAT(outputs.values.at(0), ElementsAre(0, 2, 0));
  }
}

// The model has two linear layers of one shape, of which one has a bias; figures are torch's.
TEST_F(BuildTest, TellsKernelsApartByTheirOperands) {
  const Built built = build_file({}, INGOT_SOURCE_DIR "/tests/data/pt2/weights.pt2");
  ASSERT_EQ(built.code, "");
  const auto context = context_of(built.engine.get());
  std::vector<float> x(8, 0.5F);
  const int64_t shape[] = {2, 4};
  const ingot_tensor input{x.data(), INGOT_F32, 2, shape, nullptr};
  FloatOutputs outputs;
  ASSERT_EQ(code_of(ingot_context_run(context.get(), 1, &input, FloatOutputs::allocate, &outputs)), "");
  const float expected[] = {0.4740F, 0.9319F, 1.5757F, 1.8788F};
  for (size_t i = 0; i < 4; ++i) EXPECT_NEAR(outputs.values[0][i], expected[i], 1e-4);
}

// Concurrent contexts with their own threads, any number of them, compute the same bits.
TEST_F(BuildTest, ResultsDoNotDependOnTheThreadsOfAContext) {
  const Built built = build_file();
  ASSERT_EQ(built.code, "");
  const auto run = [&](int32_t threads) {
    const ingot_context_options options{.struct_size = sizeof(ingot_context_options), .threads = threads};
    ingot_context* context = nullptr;
    EXPECT_EQ(code_of(ingot_context_create_with(built.engine.get(), &options, &context)), "");
    const Owned<ingot_context> owner(context);
    ingot_port port{.struct_size = sizeof(port)};
    EXPECT_EQ(code_of(ingot_engine_input(built.engine.get(), 0, &port)), "");
    std::vector<int64_t> shape(port.min, port.min + port.rank);
    std::vector<float> values(
        static_cast<size_t>(std::accumulate(shape.begin(), shape.end(), int64_t{1}, std::multiplies<>())));
    std::iota(values.begin(), values.end(), -7.5F);
    const ingot_tensor input{values.data(), INGOT_F32, port.rank, shape.data(), nullptr};
    FloatOutputs outputs;
    for (int i = 0; i < 20; ++i)
      EXPECT_EQ(code_of(ingot_context_run(context, 1, &input, FloatOutputs::allocate, &outputs)), "");
    return outputs.values;
  };
  const auto expected = run(1);
  std::vector<std::vector<std::vector<float>>> found(6);
  std::vector<std::thread> callers;
  for (int32_t i = 0; i < 6; ++i)
    callers.emplace_back([&, i] { found[static_cast<size_t>(i)] = run(i % 4); });
  for (std::thread& caller : callers) caller.join();
  for (const auto& values : found) EXPECT_EQ(values, expected);
}

TEST_F(BuildTest, ShipsPreparedOrOriginalWeights) {
  const auto form = [&](const Rows& rows) {
    const Built built = build_file(rows);
    EXPECT_EQ(built.code, "");
    ingot_text* text = nullptr;
    EXPECT_EQ(code_of(ingot_engine_save_memory(built.engine.get(), &text)), "");
    const Owned<ingot_text> bytes(text);
    ingot_engine* engine = nullptr;
    EXPECT_EQ(code_of(ingot_engine_load_memory(ingot_text_data(text), ingot_text_size(text), nullptr, nullptr,
                                               nullptr, &engine)),
              "");
    const Owned<ingot_engine> loaded(engine);
    EXPECT_EQ(code_of(ingot_engine_inspect(engine, &text)), "");
    return nlohmann::json::parse(text_of(text))["weights_form"].get<std::string>();
  };
  EXPECT_EQ(form({}), "prepared");
  EXPECT_EQ(form({{"keep_original_weights", "true"}}), "original");
}

TEST_F(BuildTest, CrossCompilesForAnotherProcessor) {
  const Built built = build_file({{"cpu", "x86-64-v4+vnni+bf16+fp16+amx-tile+amx-bf16+amx-int8"}});
  ASSERT_EQ(built.code, "");
  const bool runs_here = can_run(*built.engine->data, api::host());
  ingot_context* context = nullptr;
  EXPECT_EQ(code_of(ingot_context_create(built.engine.get(), &context)), runs_here ? "" : "INGOT-U220");
  ingot_context_free(context);
  const TemporaryFolder folder;
  const std::string saved = folder.path() / "cross.ingot";
  EXPECT_EQ(code_of(ingot_engine_save(built.engine.get(), saved.c_str())), "");
  EXPECT_EQ(code_of(ingot_verify_file(saved.c_str())), "");
}
#endif

}  // namespace
}  // namespace ingot::core::testing
