// SPDX-License-Identifier: Apache-2.0
// Timing tactics, on a backend for the CPU whose kernels have a second tactic: the same for older processors.
#include "compiler/tune.h"

#include <gmock/gmock.h>

#include <filesystem>
#include <set>

#include "backends/cpu/compile/backend.h"
#include "backends/cpu/execute/execute.h"
#include "compiler/compile.h"
#include "runtime/context.h"
#include "support/cpu_features.h"
#include "support/error.h"
#include "tests/support/temporary_folder.h"

namespace ingot::core {
namespace {

using ::testing::Each;
using ::testing::StartsWith;

constexpr std::string_view kOlder = "x86-64-v3";

class TwoTactics final : public Backend {
 public:
  std::string_view name() const override { return inner().name(); }
  std::string_view generator() const override { return inner().generator(); }
  std::string device(std::string_view words) const override { return inner().device(words); }
  std::vector<Pass> passes(const Target& target) const override { return inner().passes(target); }
  Support supports(const Node& node, const SymbolValues& sizes, const Target& target) const override {
    return inner().supports(node, sizes, target);
  }
  LayoutRequest layouts(const Node& node, const Target& target) const override {
    return inner().layouts(node, target);
  }
  FusionAnswer may_fuse_consumer(const Node& region, const Node& consumer,
                                 const Target& target) const override {
    return inner().may_fuse_consumer(region, consumer, target);
  }
  FusionAnswer may_fuse_producer(const Node& region, const Node& producer,
                                 const Target& target) const override {
    return inner().may_fuse_producer(region, producer, target);
  }

  std::vector<LoweredStep> lower(const Node& node, const SymbolTable& symbols,
                                 const Target& target) const override {
    std::vector<LoweredStep> steps = inner().lower(node, symbols, target);
    if (!target.times_tactics()) return steps;
    Target older = target;
    older.device = kOlder;
    std::vector<LoweredStep> others = inner().lower(node, symbols, older);
    for (size_t i = 0; i < steps.size(); ++i) {
      steps[i].others.clear();
      if (steps[i].kernel() == nullptr) continue;
      steps[i].kernel()->tactic = "newer";
      LoweredKernel other = *others[i].kernel();
      other.tactic = "older";
      other.key += "\nolder";
      steps[i].others.push_back(std::move(other));
    }
    return steps;
  }

 private:
  static const Backend& inner() { return cpu::backend(); }
};

// softmax(x @ w) with x: f32[B, 48], and B from 1 to 16: two kernels.
aten::Program program_of(int64_t batch_typical) {
  aten::Program program;
  program.argument_names = {"x"};
  program.origin = "a test";
  aten::Graph& graph = program.graph;
  graph.symbols["B"] = {.range = {1, 16}, .typical = batch_typical};
  const auto add_value = [&](const char* name, std::vector<Dim> shape) {
    graph.values.push_back({.name = name, .tensor = {.dtype = DType::kF32, .shape = std::move(shape)}});
  };
  add_value("x", {Dim::symbol("B"), 48});
  add_value("w", {48, 48});
  add_value("product", {Dim::symbol("B"), 48});
  add_value("result", {Dim::symbol("B"), 48});
  Tensor weight = make_tensor(DType::kF32, {48, 48});
  for (int64_t i = 0; i < weight.elements(); ++i)
    reinterpret_cast<float*>(weight.data.get())[i] = static_cast<float>(i % 7) / 64;
  graph.inputs = {{.value = 0, .name = "x"},
                  {.value = 1,
                   .kind = aten::InputKind::kParameter,
                   .name = "w",
                   .data = OwnedView{weight.view(), weight.data}}};
  graph.nodes.push_back({.target = "aten.mm.default",
                         .name = "product",
                         .arguments = {{"self", {aten::ValueId{0}}}, {"mat2", {aten::ValueId{1}}}},
                         .outputs = {2}});
  graph.nodes.push_back({.target = "aten.softmax.int",
                         .name = "result",
                         .arguments = {{"self", {aten::ValueId{2}}}, {"dim", {int64_t{1}}}},
                         .outputs = {3}});
  graph.outputs = {{.value = {aten::ValueId{3}}}};
  return program;
}

class Tune : public ::testing::Test {
 protected:
  void SetUp() override {
    if (host_cpu_model().empty() || !host_cpu_features().has(CpuFeature::kX86V4))
      GTEST_SKIP() << "needs a processor with two levels";
    std::filesystem::remove(file_);
  }

  std::shared_ptr<EngineData> build(int level, BuildReport& report, Phases* phases = nullptr) {
    report = {};
    const TwoTactics backend;
    const Backend* const backends[] = {&backend};
    const CompileOptions options = parse_options({{"optimization_level", std::to_string(level)},
                                                  {"cpu", "native"},
                                                  {"timing_cache_path", file_.string()},
                                                  {"threads", "1"}});
    return compile(program_of(5), options, backends, {.phases = phases, .host = &host_}, &report);
  }

  std::vector<float> run(std::shared_ptr<const EngineData> data, int64_t batch) {
    std::vector<float> x(static_cast<size_t>(batch) * 48), result(x.size());
    for (size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i % 5) / 8;
    const int64_t shape[] = {batch, 48};
    const Argument argument{
        .data = x.data(), .dtype = DType::kF32, .rank = 2, .shape = shape, .strides = nullptr};
    Context context(Engine::create(std::move(data), host_));
    const auto allocate = [](void* memory, size_t, DType, std::span<const int64_t>, size_t) {
      return static_cast<void*>(static_cast<std::vector<float>*>(memory)->data());
    };
    context.run({&argument, 1}, {allocate, &result});
    return result;
  }

  static std::set<std::string> targets(const EngineData& engine) {
    std::set<std::string> targets;
    for (const Image& image : engine.images) targets.insert(image.target);
    return targets;
  }

  const Executor* executors_[1] = {&cpu::executor()};
  Host host_{HostOptions{.threads = 1}, executors_};
  const testing::TemporaryFolder folder_;
  const std::filesystem::path file_ = folder_.path() / "tactics.txt";
};

TEST_F(Tune, TimesWholeProgramsAndKeepsWhatItFound) {
  BuildReport report;
  const auto predicted = build(3, report);
  EXPECT_EQ(report.tuning.sites, 0u);
  for (const int level : {4, 5}) {
    const auto tuned = build(level, report);
    EXPECT_EQ(report.tuning.sites, 2u);
    EXPECT_GE(report.tuning.timed, report.tuning.sites);
    EXPECT_GT(report.tuning.after_us, 0);
    EXPECT_EQ(report.distinct_kernels, tuned->images.size());
    EXPECT_EQ(tuned->images.size(), predicted->images.size());  // those that were not chosen are gone
    for (const int64_t batch : {1, 5, 16}) {
      const std::vector<float> expected = run(predicted, batch), got = run(tuned, batch);
      for (size_t i = 0; i < got.size(); ++i) ASSERT_NEAR(got[i], expected[i], 1e-4 * expected[i]);
    }
    // The next build finds all of it, and makes the same engine.
    const auto again = build(level, report);
    EXPECT_EQ(report.tuning.timed, 0u);
    ASSERT_EQ(again->images.size(), tuned->images.size());
    for (size_t i = 0; i < again->images.size(); ++i) EXPECT_EQ(again->images[i].code, tuned->images[i].code);
  }
}

TEST_F(Tune, TakesTheTacticsOfAFile) {
  BuildReport report;
  build(4, report);
  TacticTable table = read_tactics(file_);
  const std::string text = table.text();
  for (const char* tactic : {"newer", "older"}) {
    std::string edited = text;
    for (const char* old : {"newer", "older"}) {
      for (size_t at = 0; (at = edited.find(old, at)) != std::string::npos; at += 5)
        edited.replace(at, 5, tactic);
    }
    std::filesystem::remove(file_);
    add_tactics(file_, TacticTable::parse(edited, "a"));
    const auto engine = build(4, report);
    EXPECT_EQ(report.tuning.timed, 0u);
    const bool is_older = std::string_view(tactic) == "older";
    EXPECT_THAT(targets(*engine), Each(StartsWith(is_older ? "cpu:x86-64-v3" : "cpu:x86-64-v4")));
  }
}

TEST_F(Tune, KeepsWhatACancelledBuildHasTimed) {
  int calls = 0;
  constexpr int kCallsOfFirstSite = 1 + 2 + 1;  // the phase begins; kernels alone; a whole program
  Phases phases("test", [&](const Progress& progress) {
    return progress.phase != "time tactics" || ++calls <= kCallsOfFirstSite;
  });
  BuildReport report;
  EXPECT_THROW(build(5, report, &phases), UserError);
  EXPECT_FALSE(read_tactics(file_).empty());
  build(5, report);
  EXPECT_EQ(report.tuning.sites, 1u);  // the other one
}

TEST(TunedEngines, HaveAnotherKeyWhenTheirTacticsDiffer) {
  const Executor* const executors[] = {&cpu::executor()};
  Host host(HostOptions{.threads = 1}, executors);
  const Backend* const backends[] = {&cpu::backend()};
  const testing::TemporaryFolder folder;
  const auto file = folder.path() / "tactics.txt";
  const auto key = [&](const char* level) {
    const CompileOptions options = parse_options(
        {{"optimization_level", level}, {"cpu", "native"}, {"timing_cache_path", file.string()}});
    return compile(program_of(5), options, backends, {.host = &host})->key;
  };
  const std::string without = key("4"), predicted = key("3");
  TacticTable table;
  table.set(host_cpu_model(), "ab12", {4, "a tactic", "a step"});
  add_tactics(file, table);
  EXPECT_NE(key("4"), without);
  EXPECT_EQ(key("3"), predicted);
}

}  // namespace
}  // namespace ingot::core
