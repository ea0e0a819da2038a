// SPDX-License-Identifier: Apache-2.0
#include "plan/arena_order.h"

#include <gtest/gtest.h>

#include <random>

#include "engine/lifetimes.h"
#include "tests/engine/programs.h"

namespace ingot::core {
namespace {

using testing::add_buffer;
using testing::copy_step;
using testing::f32;
using testing::kernel_step;

// A random DAG of kernels over buffers of random symbolic sizes.
Program random_program(std::mt19937& random, size_t steps) {
  Program program{.name = "main"};
  program.symbols = {{"B", {.range = {1, 16}}}, {"S", {.range = {1, 256}}}};
  const Dim batch = Dim::symbol("B"), sequence = Dim::symbol("S");
  const Shape shapes[] = {{batch, sequence, 64},
                          {batch, 64},
                          {batch, 12, sequence, sequence},
                          {1000},
                          {sequence, sequence + Dim(3)}};
  std::vector<BufferId> made = {testing::add_input(program, "x", f32({batch, sequence}))};
  for (size_t i = 0; i < steps; ++i) {
    const BufferId result = add_buffer(program, "b" + std::to_string(i),
                                       f32(shapes[random() % std::size(shapes)]), ArenaStorage{});
    std::vector<BufferId> reads;
    for (size_t k = 0; k <= random() % 3; ++k)
      reads.push_back(made[made.size() - 1 - random() % std::min<size_t>(made.size(), 6)]);
    program.steps.push_back(kernel_step("k" + std::to_string(i), reads, {result}));
    made.push_back(result);
  }
  const BufferId y = testing::add_output(program, "y", f32({batch}));
  program.steps.push_back(kernel_step("last", {made.back()}, {y}));
  return program;
}

std::vector<int64_t> sizes_of(const Program& program, const SymbolValues& values) {
  std::vector<int64_t> sizes;
  for (const Buffer& buffer : program.buffers) {
    const auto* arena = buffer.as<ArenaStorage>();
    sizes.push_back(arena == nullptr ? 0 : evaluate(arena->bytes, values));
  }
  return sizes;
}

// The essential property, checked without the order relation.
void expect_no_overlap(const Program& program, const SymbolValues& values) {
  const std::vector<int64_t> sizes = sizes_of(program, values);
  std::vector<int64_t> offsets(sizes.size());
  const int64_t total = place_arena(program, {}, sizes, offsets);
  const std::vector<Lifetime> lives = lifetimes(program);
  for (BufferId a = 0; a < sizes.size(); ++a) {
    if (!program.buffers[a].as<ArenaStorage>()) continue;
    EXPECT_LE(offsets[a] + sizes[a], total);
    for (BufferId b = 0; b < a; ++b) {
      if (!program.buffers[b].as<ArenaStorage>() || !lives[a].meets(lives[b])) continue;
      ASSERT_TRUE(offsets[a] + sizes[a] <= offsets[b] || offsets[b] + sizes[b] <= offsets[a])
          << program.buffers[a].name << " and " << program.buffers[b].name;
    }
  }
}

TEST(OrderArena, HoldsForEverySizeOfRandomPrograms) {
  std::mt19937 random(11);
  for (int i = 0; i < 60; ++i) {
    Program program = random_program(random, 5 + random() % 60);
    PlanReport report;
    order_arena(program, {{"B", 8}, {"S", 128}}, report);
    EXPECT_NO_THROW(validate(program, 1, 0));
    for (int k = 0; k < 20; ++k) {
      const SymbolValues values = {{"B", random() % 17}, {"S", random() % 257}};
      expect_no_overlap(program, values);
    }
  }
}

TEST(OrderArena, TakesWhatThePlacementTookAtTypicalSizes) {
  std::mt19937 random(12);
  for (int i = 0; i < 30; ++i) {
    Program program = random_program(random, 40);
    const SymbolValues typical = {{"B", 8}, {"S", 128}};
    PlanReport report;
    order_arena(program, typical, report);
    const std::vector<int64_t> sizes = sizes_of(program, typical);
    std::vector<int64_t> offsets(sizes.size());
    EXPECT_LE(place_arena(program, {}, sizes, offsets), report.arena);
    EXPECT_GE(report.arena, report.lower_bound);
  }
}

TEST(OrderArena, KeepsFewRelations) {
  std::mt19937 random(13);
  Program program = random_program(random, 200);
  PlanReport report;
  order_arena(program, {{"B", 8}, {"S", 128}}, report);
  size_t relations = 0;
  for (const Buffer& buffer : program.buffers) {
    if (const auto* arena = buffer.as<ArenaStorage>()) relations += arena->above.size();
  }
  EXPECT_LT(relations, 3 * program.buffers.size());
}

// The buffers of a transformer: queries, keys, values, scores, a wide inner layer, and a residual stream.
Program transformer(int layers) {
  Program program{.name = "main"};
  const Dim batch = Dim::symbol("B"), sequence = Dim::symbol("S");
  program.symbols = {{"B", {.range = {1, 16}}}, {"S", {.range = {1, 256}}}};
  const TensorType hidden = f32({batch, sequence, 384});
  BufferId stream = add_buffer(program, "embedding", hidden, ArenaStorage{});
  const BufferId x = testing::add_input(program, "x", f32({batch, sequence}));
  program.steps.push_back(kernel_step("embed", {x}, {stream}));
  const auto apply = [&](const char* name, std::vector<BufferId> reads, TensorType type) {
    const BufferId result = add_buffer(program, name, std::move(type), ArenaStorage{});
    program.steps.push_back(kernel_step(name, std::move(reads), {result}));
    return result;
  };
  for (int i = 0; i < layers; ++i) {
    const BufferId qkv = apply("qkv", {stream}, f32({batch, sequence, 1152}));
    const BufferId scores = apply("scores", {qkv}, f32({batch, 12, sequence, sequence}));
    const BufferId context = apply("context", {scores, qkv}, hidden);
    const BufferId attended = apply("project", {context, stream}, hidden);
    const BufferId normal = apply("norm", {attended}, hidden);
    const BufferId inner = apply("inner", {normal}, f32({batch, sequence, 1536}));
    const BufferId outer = apply("outer", {inner, normal}, hidden);
    stream = apply("norm2", {outer}, hidden);
  }
  const BufferId y = testing::add_output(program, "y", hidden);
  program.steps.push_back(copy_step(stream, y));
  return program;
}

// Bottlenecks with a shortcut, maps that shrink as channels grow, as in ResNet-50.
Program residual_network() {
  Program program{.name = "main"};
  const Dim batch = Dim::symbol("B");
  program.symbols = {{"B", {.range = {1, 16}}}, {"S", {.range = {1, 256}}}};
  const auto map = [&](int channels, int size) { return f32({batch, channels, size, size}); };
  const auto apply = [&](const char* name, std::vector<BufferId> reads, TensorType type) {
    const BufferId result = add_buffer(program, name, std::move(type), ArenaStorage{});
    program.steps.push_back(kernel_step(name, std::move(reads), {result}));
    return result;
  };
  BufferId stream = apply("stem", {testing::add_input(program, "x", map(3, 224))}, map(64, 112));
  stream = apply("pool", {stream}, map(64, 56));
  const int blocks[] = {3, 4, 6, 3};
  for (int stage = 0, width = 64, size = 56; stage < 4; ++stage, width *= 2, size /= 2) {
    for (int block = 0; block < blocks[stage]; ++block) {
      const BufferId a = apply("reduce", {stream}, map(width, block == 0 && stage > 0 ? size * 2 : size));
      const BufferId b = apply("middle", {a}, map(width, size));
      const BufferId shortcut = block == 0 ? apply("shortcut", {stream}, map(4 * width, size)) : stream;
      stream = apply("expand", {b, shortcut}, map(4 * width, size));
    }
  }
  const BufferId y = testing::add_output(program, "y", f32({batch, 1000}));
  program.steps.push_back(kernel_step("classify", {stream}, {y}));
  return program;
}

TEST(OrderArena, IsWithinFivePercentOfTheBoundOnRealShapes) {
  for (Program program : {transformer(6), transformer(12), residual_network()}) {
    PlanReport report;
    order_arena(program, {{"B", 1}, {"S", 128}}, report);
    EXPECT_LE(static_cast<double>(report.arena), 1.05 * static_cast<double>(report.lower_bound))
        << program.buffers.size();
    for (const int64_t size : {1, 7, 256}) expect_no_overlap(program, {{"B", 3}, {"S", size}});
  }
}

}  // namespace
}  // namespace ingot::core
