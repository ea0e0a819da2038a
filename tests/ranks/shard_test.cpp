// SPDX-License-Identifier: Apache-2.0
// Weights of which each rank has a part: which part that is, refits with whole tensors, and what is refused.
#include <gmock/gmock.h>

#include "runtime/refit.h"
#include "runtime/snapshot.h"
#include "tests/ranks/ranks.h"
#include "tests/runtime/fixtures.h"

namespace ingot::core {
namespace {

using namespace testing;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string shard_error(const std::function<void()>& work) {
  return run_ranks(1, [&](int) { work(); })[0];
}

// 0, 1, 2, ... of that shape.
Tensor counted(const std::vector<int64_t>& shape) {
  Tensor tensor = make_tensor(DType::kF32, shape);
  auto* values = reinterpret_cast<float*>(tensor.data.get());
  for (size_t i = 0; i < tensor.bytes() / sizeof(float); ++i) values[i] = static_cast<float>(i);
  return tensor;
}

std::vector<float> floats_of(const TensorView& view) {
  const Tensor dense = to_dense(view);
  const auto* values = reinterpret_cast<const float*>(dense.data.get());
  return {values, values + dense.bytes() / sizeof(float)};
}

TEST(Shard, IsAPartAlongEachAxis) {
  const Tensor whole = counted({4, 6});
  const std::vector<ShardAxis> rows = {{0, 2, "tp"}}, columns = {{1, 3, "tp"}};
  const std::vector<ShardAxis> both = {{0, 2, "dp"}, {1, 3, "tp"}};
  EXPECT_EQ(part_count(both), 6);
  EXPECT_THAT(whole_shape({2, 2}, both), ElementsAre(4, 6));
  EXPECT_THAT(floats_of(part_of(whole.view(), rows, 1)),
              ElementsAre(12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23));
  EXPECT_THAT(floats_of(part_of(whole.view(), columns, 2)), ElementsAre(4, 5, 10, 11, 16, 17, 22, 23));
  const int64_t part = part_number(both, {{"dp", 1}, {"tp", 1}});
  EXPECT_EQ(part, 4);
  EXPECT_THAT(floats_of(part_of(whole.view(), both, part)), ElementsAre(14, 15, 20, 21));
}

// One axis may be divided twice: first among the groups of the first entry.
TEST(Shard, DividesAnAxisFurther) {
  const std::vector<ShardAxis> twice = {{0, 2, "dp"}, {0, 2, "tp"}};
  EXPECT_THAT(whole_shape({2}, twice), ElementsAre(8));
  const Tensor whole = counted({8});
  for (int64_t dp = 0; dp < 2; ++dp)
    for (int64_t tp = 0; tp < 2; ++tp) {
      const float first = static_cast<float>(4 * dp + 2 * tp);
      const int64_t part = part_number(twice, {{"dp", dp}, {"tp", tp}});
      EXPECT_THAT(floats_of(part_of(whole.view(), twice, part)), ElementsAre(first, first + 1));
    }
}

TEST(Shard, HasPartsOfDifferentSizes) {
  const std::vector<ShardAxis> rows = {{0, 3, "tp", {2, 3, 0}}}, columns = {{1, 2, "tp", {2, 1}}};
  EXPECT_TRUE(has_uneven_parts(rows));
  EXPECT_FALSE(has_uneven_parts({{0, 3, "tp"}}));
  EXPECT_THAT(whole_shape({3, 3}, rows), ElementsAre(5, 3));
  EXPECT_THAT(part_shape({3, 3}, rows, 0), ElementsAre(2, 3));
  const Tensor whole = counted({5, 3});
  const TensorView own = part_of(whole.view(), rows, 0), last = part_of(whole.view(), columns, 1);
  EXPECT_THAT(floats_of(own), ElementsAre(0, 1, 2, 3, 4, 5));
  EXPECT_THAT(floats_of(part_of(whole.view(), rows, 2)), ElementsAre());
  EXPECT_THAT(floats_of(last), ElementsAre(2, 5, 8, 11, 14));
  EXPECT_THAT(floats_of(filled_up(own, {3, 3}).view()), ElementsAre(0, 1, 2, 3, 4, 5, 0, 0, 0));
  EXPECT_THAT(floats_of(filled_up(last, {5, 2}).view()), ElementsAre(2, 0, 5, 0, 8, 0, 11, 0, 14, 0));
  EXPECT_THAT(floats_of(filled_up(part_of(whole.view(), rows, 2), {1, 3}).view()), Each(0));
}

TEST(Shard, NeedsARankOfItsGroup) {
  const std::vector<ShardAxis> shards = {{0, 2, "tp"}};
  EXPECT_EQ(part_number(shards, {}), kNoPart);
  EXPECT_EQ(part_number(shards, {{"dp", 1}}), kNoPart);
  EXPECT_EQ(part_number(shards, {{"tp", 2}}), kNoPart);
  EXPECT_EQ(part_number(shards, {{"", 1}}), 1);
  EXPECT_EQ(part_number(shards, {{"", 1}, {"tp", 0}}), 0);
}

class ShardedEngine : public ::testing::Test {
 protected:
  // `w` and `b` of weighted_engine are halves of tensors of 4.
  std::shared_ptr<Engine> make(const std::vector<int64_t>& extents = {}) {
    auto data = std::make_shared<EngineData>(without_weights(weighted_engine()));
    data->weights_form = WeightsForm::kPrepared;
    for (SourceWeight& source : data->sources) source.shards = {{0, 2, "", extents}};
    return Engine::create(data, host_);
  }
  static SourceValues values(const Tensor& w, const Tensor& b) {
    return {{"w", {w.view(), w.data}}, {"b", {b.view(), b.data}}};
  }
  static std::vector<float> run(const std::shared_ptr<Engine>& engine) {
    Context context(engine, {});
    Outputs outputs;
    context.run({}, outputs.allocator());
    return {outputs.at(0), outputs.at(0) + 2};
  }

  const TestExecutor executor_{weighted_kernels()};
  const Executor* executors_[1] = {&executor_};
  Host host_{{.threads = 1}, executors_};
  const Tensor whole_ = counted({4}), part_ = counted({2});
};

TEST_F(ShardedEngine, TakesItsPartOfWholeTensors) {
  for (const int64_t rank : {0, 1}) {
    const auto engine = make();
    engine->refit(values(whole_, whole_), Coverage::kAll, {{"", rank}});
    const float first = static_cast<float>(2 * rank);
    EXPECT_THAT(run(engine), ElementsAre(11 * first, 11 * (first + 1)));
    engine->refit(values(whole_, part_), Coverage::kAll, {{"", rank}});  // a part is what it is
    EXPECT_THAT(run(engine), ElementsAre(10 * first, 10 * (first + 1) + 1));
  }
}

TEST_F(ShardedEngine, NeedsTheRankForWholeTensorsOnly) {
  const auto engine = make();
  EXPECT_THAT(shard_error([&] { engine->refit(values(whole_, part_), Coverage::kAll); }),
              HasSubstr("INGOT-U357: the value of 'w' is the whole tensor"));
  engine->refit(values(part_, part_), Coverage::kAll);
  EXPECT_THAT(run(engine), ElementsAre(0, 11));
  EXPECT_THAT(shard_error([&] { engine->refit(values(whole_, part_), Coverage::kAll, {{"", 2}}); }),
              HasSubstr("a part, and rank 2 is none of the 2 of group ''"));
  const Tensor other = counted({3});
  EXPECT_THAT(shard_error([&] { engine->refit(values(other, part_), Coverage::kAll, {{"", 0}}); }),
              HasSubstr("INGOT-U321"));
}

// Whatever stays and what is new belong together.
TEST_F(ShardedEngine, KeepsTheRankInPartialRefits) {
  const auto engine = make();
  engine->refit(values(whole_, whole_), Coverage::kAll, {{"", 1}});
  const SourceValues other{{"b", {whole_.view(), whole_.data}}};
  EXPECT_EQ(shard_error([&] { engine->refit(other, Coverage::kSome, {{"", 0}}); }),
            "INGOT-U358: the engine has the weights of rank 1 of group '', and the new ones are of rank 0");
  engine->refit(other, Coverage::kSome);  // the known rank's
  EXPECT_THAT(run(engine), ElementsAre(22, 33));
  EXPECT_EQ(engine->weights()->ranks, (ShardRanks{{"", 1}}));
  engine->refit(values(whole_, whole_), Coverage::kAll, {{"", 0}});
  EXPECT_THAT(run(engine), ElementsAre(0, 11));
}

// Zeros follow a part that is smaller than the largest. Whose part it is has to be known even so.
TEST_F(ShardedEngine, FillsUpSmallerParts) {
  const Tensor whole = counted({3}), own = counted({1});
  for (const int64_t rank : {0, 1}) {
    const auto engine = make({2, 1});
    engine->refit(values(whole, whole), Coverage::kAll, {{"", rank}});
    EXPECT_THAT(run(engine), rank == 0 ? ElementsAre(0, 11) : ElementsAre(22, 0));
    engine->refit(values(whole, rank == 0 ? part_ : own), Coverage::kAll, {{"", rank}});
    EXPECT_THAT(run(engine), rank == 0 ? ElementsAre(0, 11) : ElementsAre(20, 0));
  }
  const auto engine = make({2, 1});
  EXPECT_EQ(shard_error([&] { engine->refit(values(whole, part_), Coverage::kAll, {{"", 1}}); }),
            "INGOT-U321: weight 'b' is f32[1] on rank 1, but the new value is f32[2]");
  for (const Tensor& any : {whole, part_, own})
    EXPECT_THAT(shard_error([&] { engine->refit(values(any, any), Coverage::kAll); }),
                HasSubstr("INGOT-U357: the value of 'b' is a tensor, or a part of one"));
  EXPECT_THAT(shard_error([&] { engine->refit(values(whole, whole), Coverage::kAll, {{"", 2}}); }),
              HasSubstr("rank 2 is none of the 2 of group ''"));
}

TEST_F(ShardedEngine, KeepsTheSizesOfPartsInAFile) {
  const auto engine = make({2, 1});
  engine->refit(values(counted({3}), counted({3})), Coverage::kAll, {{"", 1}});
  std::vector<std::byte> file;
  write_engine(*snapshot(engine), [&](Bytes part) { file.insert(file.end(), part.begin(), part.end()); });
  const auto loaded = Engine::load(EngineFile::open(file, nullptr), {}, host_);
  EXPECT_THAT(run(loaded), ElementsAre(22, 0));
  EXPECT_THAT(loaded->data().sources[0].shards[0].extents, ElementsAre(2, 1));
  EXPECT_EQ(loaded->weights()->ranks, (ShardRanks{{"", 1}}));
  auto damaged = std::make_shared<EngineData>(loaded->data());
  const std::vector<std::vector<int64_t>> wrong = {{3, 1}, {1, 1}, {2, -1}, {2}, {2, 1, 0}};
  for (const std::vector<int64_t>& extents : wrong) {
    damaged->sources[0].shards[0].extents = extents;
    file.clear();
    write_engine(*damaged, [&](Bytes part) { file.insert(file.end(), part.begin(), part.end()); });
    EXPECT_THAT(shard_error([&] { EngineFile::open(file, nullptr); }),
                HasSubstr("the parts of a weight do not fit its shape"));
  }
}

// Also through a file: another rank must not run with them.
TEST_F(ShardedEngine, RemembersWhoseWeightsItHas) {
  const auto engine = make();
  engine->refit(values(whole_, whole_), Coverage::kAll, {{"", 1}});
  std::vector<std::byte> file;
  write_engine(*snapshot(engine), [&](Bytes part) { file.insert(file.end(), part.begin(), part.end()); });
  const auto loaded = Engine::load(EngineFile::open(file, nullptr), {}, host_);
  EXPECT_THAT(run(loaded), ElementsAre(22, 33));
  ASSERT_EQ(loaded->data().sources[0].shards.size(), 1);
  EXPECT_EQ(loaded->data().sources[0].shards[0].parts, 2);
  const ShardRanks known = loaded->weights()->ranks;
  EXPECT_EQ(known, (ShardRanks{{"", 1}}));
  const Groups groups = connected(2);
  for (size_t rank = 0; rank < 2; ++rank) {
    const BoundGroups bound{.groups = {{"", groups[rank]}}, .ranks = {{"", groups[rank]->rank()}}};
    EXPECT_EQ(
        shard_error([&] { check_parts(known, bound); }),
        rank == 1 ? "" : "INGOT-U358: the engine has the weights of rank 1 of group '', and this is rank 0");
  }
}

}  // namespace
}  // namespace ingot::core
