// SPDX-License-Identifier: Apache-2.0
// Contexts with groups of ranks: binding, and runs that fail or overlap.
#include <gmock/gmock.h>

#include <future>

#include "runtime/groups.h"
#include "tests/ranks/ranks.h"
#include "tests/runtime/fixtures.h"

namespace ingot::core {
namespace {

using namespace testing;
using ::testing::Each;
using ::testing::HasSubstr;

struct Choice {
  std::string group = "tp";
  int64_t ranks = 2, only_rank = -1;
  std::string model = "aten.relu.default";  // its only node
};

Step reduce(const Choice& choice, BufferId x, BufferId y) {
  const NamedValues attributes = {{"group", choice.group},
                                  {"ranks", choice.ranks},
                                  {"only_rank", choice.only_rank},
                                  {"reduction", std::string("sum")}};
  return {.name = "all_reduce",
          .action = RoutineStep{"all_reduce", attributes},
          .uses = {{x, true, false}, {y, false, true}},
          .nodes = {0}};
}

// y = all_reduce(x); assert ok; z = all_reduce(y)
EngineData engine_of(const Choice& choice) {
  EngineData engine{.name = "test", .target = "null"};
  Program& main = engine.main;
  main.name = "main";
  const BufferId x = add_input(main, "x", f32({4}));
  const BufferId ok = add_input(main, "ok", {DType::kBool, {}, {}});
  const BufferId y = add_output(main, "y", f32({4})), z = add_output(main, "z", f32({4}));
  Step check{.name = "assert_true",
             .action = RoutineStep{"assert_true", {{"message", std::string("it is not ok")}}},
             .uses = {{ok, true, false}}};
  main.steps = {reduce(choice, x, y), std::move(check), reduce(choice, y, z)};
  engine.nodes.push_back({"sum_1", choice.model, "model.py:3 in forward"});
  return engine;
}

class RankContexts : public ::testing::Test {
 protected:
  std::unique_ptr<Context> make(const Choice& choice, const std::shared_ptr<Communicator>& group,
                                const std::string& name = "tp") {
    ContextOptions options;
    if (group != nullptr) options.groups.push_back({name, group});
    return std::make_unique<Context>(Engine::create(std::make_shared<EngineData>(engine_of(choice)), host_),
                                     options);
  }
  std::string refusal(const Choice& choice, const std::shared_ptr<Communicator>& group,
                      const std::string& name = "tp") {
    return run_ranks(1, [&](int) { make(choice, group, name); })[0];
  }
  // z of a run whose x begins with `first`.
  static float run(Context& context, float first, bool ok = true) {
    const Tensor x = filled({4}, first), flag = make_tensor(DType::kBool, {});
    *flag.data.get() = std::byte(ok);
    const Argument arguments[] = {argument(x), argument(flag)};
    Outputs outputs;
    context.run(arguments, outputs.allocator());
    return outputs.at(1)[0];
  }

  const TestExecutor executor_{{}};
  const Executor* executors_[1] = {&executor_};
  Host host_{{.threads = 1}, executors_};
};

TEST_F(RankContexts, AreForTheirGroups) {
  const Groups groups = connected(2);
  EXPECT_EQ(refusal({}, groups[0]), "");
  EXPECT_EQ(refusal({}, groups[0], ""), "");  // the engine's only one
  EXPECT_EQ(refusal({.ranks = 0}, groups[0]), "");
  EXPECT_EQ(refusal({.only_rank = 1}, groups[1]), "");
  EXPECT_EQ(refusal({.ranks = 3}, groups[0]), "INGOT-U352: group 'tp' has 2 ranks, the engine is for 3");
  EXPECT_EQ(refusal({.only_rank = 0}, groups[1]),
            "INGOT-U351: the engine was built by rank 0 of group 'tp' and may differ from that of rank 1");
}

TEST_F(RankContexts, NameTheGroupThatIsMissing) {
  const Groups groups = connected(2);
  for (const auto& group : {std::shared_ptr<Communicator>(), groups[0]}) {
    const auto context = make({}, group, "dp");
    const auto errors = run_ranks(1, [&](int) { run(*context, 1); });
    EXPECT_THAT(errors[0], HasSubstr("INGOT-U350: all_reduce: no group of ranks is bound to 'tp'"));
  }
}

TEST_F(RankContexts, RunTogether) {
  const Groups groups = connected(2);
  const auto errors = run_ranks(2, [&](int rank) {
    const auto context = make({}, groups[static_cast<size_t>(rank)]);
    for (int i = 0; i < 3; ++i)
      EXPECT_EQ(run(*context, static_cast<float>(rank + i)), 2.0F * static_cast<float>(1 + 2 * i));
    EXPECT_TRUE(context->is_usable());
  });
  EXPECT_THAT(errors, Each(""));
}

TEST_F(RankContexts, NoticeOtherModels) {
  const auto errors_of = [&](const Choice& other) {
    const Groups groups = connected(2);
    return run_ranks(2, [&](int rank) {
      run(*make(rank == 0 ? Choice{.only_rank = other.only_rank == -1 ? -1 : 0} : other,
                groups[static_cast<size_t>(rank)]),
          1);
    });
  };
  EXPECT_THAT(errors_of({.model = "aten.gelu.default"}), Each(HasSubstr("INGOT-D351")));
  // Programs that ranks traced for themselves may differ.
  EXPECT_THAT(errors_of({.only_rank = 1, .model = "aten.gelu.default"}), Each(""));
}

// The other rank waits for the second collective.
TEST_F(RankContexts, EndTheirGroupsWhenARunFailsHalfway) {
  const Groups groups = connected(2);
  std::vector<std::unique_ptr<Context>> contexts;
  for (const auto& group : groups) contexts.push_back(make({}, group));
  const auto errors =
      run_ranks(2, [&](int rank) { run(*contexts[static_cast<size_t>(rank)], 1, rank == 0); });
  EXPECT_THAT(errors[1], HasSubstr("INGOT-U313: an assertion of the program failed: it is not ok"));
  EXPECT_THAT(errors[0], HasSubstr("INGOT-D350: group 'tp': a run of rank 1 failed"));
  EXPECT_THAT(errors[0], HasSubstr("it is not ok"));
  EXPECT_THAT(errors[0], HasSubstr("(in sum_1)"));
  const auto later = run_ranks(2, [&](int rank) { run(*contexts[static_cast<size_t>(rank)], 1); });
  EXPECT_THAT(later, Each(HasSubstr("INGOT-D352")));
  for (const auto& context : contexts) EXPECT_FALSE(context->is_usable());
}

// Before its first collective a run has promised nothing to the others.
TEST_F(RankContexts, MayFailBeforeTheFirstCollective) {
  const Groups groups = connected(2);
  const auto errors = run_ranks(2, [&](int rank) {
    const auto context = make({}, groups[static_cast<size_t>(rank)]);
    if (rank == 0) {
      const Tensor wrong = filled({5}, 1), flag = make_tensor(DType::kBool, {});
      const Argument arguments[] = {argument(wrong), argument(flag)};
      Outputs outputs;
      EXPECT_THROW(context->run(arguments, outputs.allocator()), UserError);
    }
    EXPECT_EQ(run(*context, 1), 4);
  });
  EXPECT_THAT(errors, Each(""));
}

TEST_F(RankContexts, RefuseRunsThatOverlap) {
  const Groups groups = connected(2);
  const auto first = make({}, groups[0]), second = make({}, groups[0]), other = make({}, groups[1]);
  auto waiting = std::async(std::launch::async, [&] { return run(*first, 1); });
  std::string refusal;
  while (refusal.empty())
    refusal = run_ranks(1, [&](int) {
      if (waiting.wait_for(std::chrono::milliseconds(0)) == std::future_status::ready) return;
      if (groups[0]->exchanges() > 0) run(*second, 1);
    })[0];
  EXPECT_EQ(refusal, "INGOT-U355: another run is using group 'tp'");
  EXPECT_EQ(run(*other, 1), 4);
  EXPECT_EQ(waiting.get(), 4);
}

// y = x, both of this rank's size, which follows from its positions in two groups; there are no collectives.
EngineData engine_of_own_size() {
  EngineData engine{.name = "test", .target = "null"};
  Program& main = engine.main;
  main.name = "main";
  main.symbols["R"] = {.range = {1, 4},
                       .typical = 4,
                       .upper_bound = {},
                       .by_rank = RankSizes{.axes = {{"tp", 2}, {"dp", 2}}, .sizes = {1, 2, 3, 4}}};
  const BufferId x = add_input(main, "x", f32({Dim::symbol("R")}));
  const BufferId y = add_output(main, "y", f32({Dim::symbol("R")}));
  main.steps = {copy_step(x, y)};
  return engine;
}

TEST_F(RankContexts, SizesFollowFromTheRankInSeveralGroups) {
  const Groups rows = connected(2), columns = connected(2);
  const auto engine = Engine::create(std::make_shared<EngineData>(engine_of_own_size()), host_);
  const auto shape_with = [&](const ContextOptions& options, int64_t size) {
    Context context(engine, options);
    const Tensor x = filled({size}, 1);
    const Argument arguments[] = {argument(x)};
    return context.output_shapes(arguments)[0][0];
  };
  for (size_t tp = 0; tp < 2; ++tp) {
    for (size_t dp = 0; dp < 2; ++dp) {
      ContextOptions options;
      options.groups = {{"tp", rows[tp]}, {"dp", columns[dp]}};
      const auto own = static_cast<int64_t>(1 + 2 * tp + dp);
      EXPECT_EQ(shape_with(options, own), own);
      const auto errors = run_ranks(1, [&](int) { shape_with(options, 5); });
      EXPECT_THAT(errors[0], HasSubstr("INGOT-U304"));
      EXPECT_THAT(errors[0], HasSubstr(fmt::format("is 5, but {} on this rank", own)));
    }
  }
}

TEST_F(RankContexts, SizesOfTheRankNeedItsGroups) {
  const Groups groups = connected(2), more = connected(3);
  const auto engine = Engine::create(std::make_shared<EngineData>(engine_of_own_size()), host_);
  const auto refusal_with = [&](std::vector<BoundGroups::Bound> bound) {
    ContextOptions options;
    options.groups = std::move(bound);
    return run_ranks(1, [&](int) {
      Context context(engine, options);
      const Tensor x = filled({1}, 1);
      const Argument arguments[] = {argument(x)};
      context.output_shapes(arguments);
    })[0];
  };
  EXPECT_THAT(refusal_with({}), HasSubstr("INGOT-U350: sizes depend on the rank"));
  EXPECT_THAT(refusal_with({{"tp", groups[0]}}), HasSubstr("no group of ranks is bound to 'dp'"));
  EXPECT_EQ(refusal_with({{"tp", groups[0]}, {"dp", more[2]}}),
            "INGOT-U352: group 'dp' has 3 ranks, the engine is for 2");
}

// They exchange nothing: two of their runs may use a group at a time.
TEST_F(RankContexts, SizesOfTheRankLeaveItsGroupsToOthers) {
  const Groups groups = connected(2);
  EngineData engine = engine_of_own_size();
  engine.main.symbols.at("R").by_rank = {.axes = {{"tp", 2}}, .sizes = {1, 2}};
  ContextOptions options;
  options.groups = {{"tp", groups[1]}};
  Context context(Engine::create(std::make_shared<EngineData>(std::move(engine)), host_), options);
  ASSERT_TRUE(groups[1]->begin_run());
  const Tensor x = filled({2}, 3);
  const Argument arguments[] = {argument(x)};
  Outputs outputs;
  context.run(arguments, outputs.allocator());
  EXPECT_EQ(outputs.at(0)[1], 4.0F);
  groups[1]->end_run();
}

}  // namespace
}  // namespace ingot::core
