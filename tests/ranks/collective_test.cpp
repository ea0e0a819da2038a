// SPDX-License-Identifier: Apache-2.0
// Collectives against their definition, computed from the tensors of all ranks.
#include <gmock/gmock.h>

#include <cmath>
#include <cstring>
#include <limits>

#include "ops/collective.h"
#include "routines/routine_table.h"
#include "tests/ranks/ranks.h"
#include "types/tensor.h"

namespace ingot::core {
namespace {

using namespace testing;
using ::testing::Each;
using ::testing::HasSubstr;

constexpr DType kNumbers[] = {DType::kF64, DType::kF32, DType::kF16, DType::kBF16, DType::kI64, DType::kI32,
                              DType::kI16, DType::kI8,  DType::kU8,  DType::kU16,  DType::kU32, DType::kU64};

// Small whole numbers, whose sums and products every dtype holds exactly.
Tensor tensor_of(DType dtype, std::vector<int64_t> shape, int rank) {
  Tensor tensor = make_tensor(dtype, shape);
  const Tensor flat{tensor.data, dtype, {tensor.elements()}};
  for (int64_t i = 0; i < tensor.elements(); ++i) {
    const int64_t index[] = {i};
    write_double(
        flat.view(), index,
        static_cast<double>((i * 7 + rank * 3) % 5 - (is_signed(dtype) || is_floating(dtype) ? 2 : 0)));
  }
  return tensor;
}

std::vector<double> values_of(const Tensor& tensor) {
  const Tensor flat{tensor.data, tensor.dtype, {tensor.elements()}};
  std::vector<double> values;
  for (int64_t i = 0; i < tensor.elements(); ++i) {
    const int64_t index[] = {i};
    values.push_back(read_double(flat.view(), index));
  }
  return values;
}

NamedValues attributes(int64_t ranks, NamedValues more = {}) {
  more.insert(more.begin(), {{"group", std::string("tp")}, {"ranks", ranks}, {"only_rank", int64_t{-1}}});
  return more;
}

// One rank's call.
void call(const char* routine, const std::shared_ptr<Communicator>& group, const NamedValues& given,
          const Tensor& input, const Tensor& output) {
  const BoundGroups groups{{{"tp", group}}, 1};
  const TensorView from[] = {input.view()}, to[] = {output.view()};
  find_routine(routine)->run({.inputs = from, .outputs = to, .attributes = given, .groups = &groups});
}

double reduced(std::string_view reduction, const std::vector<double>& values) {
  double result = values[0];
  for (size_t i = 1; i < values.size(); ++i) {
    if (reduction == "max")
      result = std::max(result, values[i]);
    else if (reduction == "min")
      result = std::min(result, values[i]);
    else if (reduction == "product")
      result *= values[i];
    else
      result += values[i];
  }
  return reduction == "avg" ? result / static_cast<double>(values.size()) : result;
}

// Below and above the size that changes the algorithm, and not divisible by the number of ranks.
TEST(AllReduce, ReducesEachElementOverTheRanks) {
  for (const int size : {2, 4}) {
    const Groups groups = connected(size);
    for (const DType dtype : kNumbers) {
      for (const char* reduction : {"sum", "avg", "max", "min", "product"}) {
        if (std::string_view(reduction) == "avg" && !is_floating(dtype)) continue;
        for (const int64_t elements : {0, 1, 37, 33'001}) {
          if (elements > 37 && std::string_view(reduction) != "sum") continue;
          std::vector<std::vector<double>> all;
          for (int r = 0; r < size; ++r) all.push_back(values_of(tensor_of(dtype, {elements}, r)));
          std::vector<Tensor> results;
          for (int r = 0; r < size; ++r) results.push_back(make_tensor(dtype, {elements}));
          const auto errors = run_ranks(size, [&](int rank) {
            const auto at = static_cast<size_t>(rank);
            call("all_reduce", groups[at], attributes(0, {{"reduction", std::string(reduction)}}),
                 tensor_of(dtype, {elements}, rank), results[at]);
          });
          ASSERT_THAT(errors, Each(""));
          for (const Tensor& result : results) {
            const std::vector<double> got = values_of(result);
            for (size_t i = 0; i < got.size(); ++i) {
              std::vector<double> parts;
              for (const auto& values : all) parts.push_back(values[i]);
              ASSERT_EQ(got[i], reduced(reduction, parts)) << name(dtype) << " " << reduction << " " << i;
            }
          }
        }
      }
    }
  }
}

// What the compiler accepts is what runs.
TEST(AllReduce, RunsInEachDtypeThatIsReducible) {
  const auto group = join_group({.address = "127.0.0.1:1", .size = 1});
  for (int number = 1; number <= static_cast<int>(DType::kC128); ++number) {
    const auto dtype = static_cast<DType>(number);
    const Tensor x = make_tensor(dtype, {4}), y = make_tensor(dtype, {4});
    const auto errors = run_ranks(
        1, [&](int) { call("all_reduce", group, attributes(1, {{"reduction", std::string("sum")}}), x, y); });
    EXPECT_EQ(errors[0].empty(), ops::is_reducible(dtype)) << name(dtype) << ": " << errors[0];
  }
}

// Sums that depend on the order have the same bits on all ranks and in each run, whatever the size.
TEST(AllReduce, HasTheSameBitsEverywhere) {
  const Groups groups = connected(4);
  const auto input = [](int rank, int64_t elements) {
    Tensor tensor = make_tensor(DType::kF32, {elements});
    auto* values = reinterpret_cast<float*>(tensor.data.get());
    for (int64_t i = 0; i < elements; ++i)
      values[i] = std::sin(static_cast<float>(i * 4 + rank)) * std::pow(10.0F, static_cast<float>(rank));
    return tensor;
  };
  for (const int64_t elements : {100, 20'000}) {
    std::vector<Tensor> results;
    for (int r = 0; r < 4; ++r) results.push_back(make_tensor(DType::kF32, {elements}));
    run_ranks(4, [&](int rank) {
      const auto at = static_cast<size_t>(rank);
      call("all_reduce", groups[at], attributes(4, {{"reduction", std::string("sum")}}),
           input(rank, elements), results[at]);
    });
    for (const Tensor& result : results)
      EXPECT_EQ(std::memcmp(result.data.get(), results[0].data.get(), result.bytes()), 0);
    for (int64_t i = 0; i < elements; i += elements / 100) {
      float sum = 0;
      for (int r = 0; r < 4; ++r) sum += reinterpret_cast<const float*>(input(r, i + 1).data.get())[i];
      ASSERT_EQ(reinterpret_cast<const float*>(results[1].data.get())[i], sum);
    }
  }
}

// Narrow sums are rounded once, and NaN of any rank reaches all.
TEST(AllReduce, RoundsOnceAndKeepsNaN) {
  const Groups groups = connected(3);
  const double kNaN = std::numeric_limits<double>::quiet_NaN();
  const auto reduce = [&](DType dtype, const char* reduction, std::vector<double> parts) {
    std::vector<Tensor> results;
    for (int r = 0; r < 3; ++r) results.push_back(make_tensor(dtype, {1}));
    run_ranks(3, [&](int rank) {
      const auto at = static_cast<size_t>(rank);
      const Tensor input = make_tensor(dtype, {1});
      const int64_t index[] = {0};
      write_double(input.view(), index, parts[at]);
      call("all_reduce", groups[at], attributes(3, {{"reduction", std::string(reduction)}}), input,
           results[at]);
    });
    EXPECT_EQ(std::memcmp(results[0].data.get(), results[2].data.get(), results[0].bytes()), 0);
    return values_of(results[1])[0];
  };
  EXPECT_EQ(reduce(DType::kBF16, "sum", {256, 1, 1}), 258);  // 256 + 1 is 256 in bf16
  EXPECT_EQ(reduce(DType::kF16, "avg", {40000, 40000, 40000}), 40000);
  for (const char* reduction : {"sum", "avg", "max", "min", "product"}) {
    for (int at = 0; at < 3; ++at) {
      std::vector<double> parts = {1, 2, 3};
      parts[static_cast<size_t>(at)] = kNaN;
      EXPECT_TRUE(std::isnan(reduce(DType::kF32, reduction, parts))) << reduction << at;
    }
  }
  EXPECT_EQ(reduce(DType::kI8, "sum", {127, 1, 0}), -128);
  EXPECT_EQ(reduce(DType::kI16, "product", {300, 300, 1}), static_cast<int16_t>(90000));
}

TEST(AllGather, JoinsAlongTheFirstDim) {
  const Groups groups = connected(4);
  for (const DType dtype : {DType::kF32, DType::kI64, DType::kBool, DType::kE4M3}) {
    std::vector<Tensor> results(4);
    const auto errors = run_ranks(4, [&](int rank) {
      Tensor& own = results[static_cast<size_t>(rank)] = make_tensor(dtype, {12, 5});
      call("all_gather", groups[static_cast<size_t>(rank)], attributes(4), tensor_of(dtype, {3, 5}, rank),
           own);
    });
    ASSERT_THAT(errors, Each(""));
    std::vector<double> expected;
    for (int r = 0; r < 4; ++r)
      for (const double value : values_of(tensor_of(dtype, {3, 5}, r))) expected.push_back(value);
    for (const Tensor& result : results) EXPECT_EQ(values_of(result), expected);
  }
}

TEST(ReduceScatter, GivesEachRankItsPartOfTheSum) {
  const Groups groups = connected(4);
  const auto errors = run_ranks(4, [&](int rank) {
    const Tensor result = make_tensor(DType::kI32, {2, 3});
    call("reduce_scatter", groups[static_cast<size_t>(rank)],
         attributes(4, {{"reduction", std::string("sum")}}), tensor_of(DType::kI32, {8, 3}, rank), result);
    std::vector<double> sums(24);
    for (int r = 0; r < 4; ++r) {
      const std::vector<double> part = values_of(tensor_of(DType::kI32, {8, 3}, r));
      for (size_t i = 0; i < sums.size(); ++i) sums[i] += part[i];
    }
    EXPECT_EQ(values_of(result), std::vector<double>(sums.begin() + rank * 6, sums.begin() + rank * 6 + 6));
  });
  EXPECT_THAT(errors, Each(""));
}

// Rank r sends (r + s) % 3 rows to rank s.
TEST(AllToAll, MovesRowsEvenlyOrNot) {
  const Groups groups = connected(3);
  const auto rows = [](int from, int to) { return (from + to) % 3; };
  const auto errors = run_ranks(3, [&](int rank) {
    const auto& group = groups[static_cast<size_t>(rank)];
    std::string sent, received;
    int received_rows = 0;
    std::vector<double> expected;
    for (int other = 0; other < 3; ++other) {
      sent += fmt::format("{}{}", other == 0 ? "" : ",", rows(rank, other));
      received += fmt::format("{}{}", other == 0 ? "" : ",", rows(other, rank));
      received_rows += rows(other, rank);
      int before = 0;
      for (int to = 0; to < rank; ++to) before += rows(other, to);
      const std::vector<double> theirs = values_of(tensor_of(DType::kF32, {3, 2}, other));
      expected.insert(expected.end(), theirs.begin() + before * 2,
                      theirs.begin() + (before + rows(other, rank)) * 2);
    }
    const Tensor result = make_tensor(DType::kF32, {received_rows, 2});
    call("all_to_all", group, attributes(3, {{"sent", sent}, {"received", received}}),
         tensor_of(DType::kF32, {3, 2}, rank), result);
    EXPECT_EQ(values_of(result), expected);
    const Tensor even = make_tensor(DType::kF32, {3, 2});
    call("all_to_all", group, attributes(3, {{"sent", std::string()}, {"received", std::string()}}),
         tensor_of(DType::kF32, {3, 2}, rank), even);
    for (size_t other = 0; other < 3; ++other) {
      const std::vector<double> theirs = values_of(tensor_of(DType::kF32, {3, 2}, static_cast<int>(other)));
      EXPECT_EQ(values_of(even)[other * 2], theirs[static_cast<size_t>(rank) * 2]);
    }
  });
  EXPECT_THAT(errors, Each(""));
}

TEST(Broadcast, GivesAllTheSourcesTensor) {
  const Groups groups = connected(3);
  for (const int source : {0, 2}) {
    const auto errors = run_ranks(3, [&](int rank) {
      const Tensor result = make_tensor(DType::kF16, {4});
      call("broadcast", groups[static_cast<size_t>(rank)], attributes(3, {{"source", int64_t{source}}}),
           tensor_of(DType::kF16, {4}, rank), result);
      EXPECT_EQ(values_of(result), values_of(tensor_of(DType::kF16, {4}, source)));
    });
    EXPECT_THAT(errors, Each(""));
  }
}

// An engine file may claim anything: nothing is read or written outside of the tensors.
TEST(Collectives, RejectWhatDoesNotFit) {
  const auto group = join_group({.address = "127.0.0.1:1", .size = 1});
  const auto refusal = [&](const char* routine, const NamedValues& given, std::vector<int64_t> input,
                           std::vector<int64_t> output, DType dtype = DType::kF32) {
    return run_ranks(1, [&](int) {
      call(routine, group, given, make_tensor(dtype, std::move(input)),
           make_tensor(dtype, std::move(output)));
    })[0];
  };
  const std::string sum = "sum";
  EXPECT_EQ(refusal("all_reduce", attributes(1, {{"reduction", sum}}), {4}, {4}), "");
  EXPECT_THAT(refusal("all_reduce", attributes(1, {{"reduction", sum}}), {4}, {5}), HasSubstr("INGOT-U332"));
  EXPECT_THAT(refusal("all_reduce", attributes(1, {{"reduction", std::string("xor")}}), {4}, {4}),
              HasSubstr("INGOT-U332"));
  EXPECT_THAT(
      refusal("all_reduce", attributes(1, {{"reduction", std::string("avg")}}), {4}, {4}, DType::kI32),
      HasSubstr("INGOT-U332"));
  EXPECT_THAT(refusal("all_reduce", attributes(1, {{"reduction", sum}}), {4}, {4}, DType::kBool),
              HasSubstr("INGOT-U332"));
  EXPECT_THAT(refusal("all_reduce", attributes(1, {{"reduction", sum}}), {4}, {4}, DType::kI4),
              HasSubstr("INGOT-U332"));
  EXPECT_THAT(refusal("all_reduce", attributes(1), {4}, {4}), HasSubstr("INGOT-U330"));
  EXPECT_THAT(refusal("all_reduce", attributes(2, {{"reduction", sum}}), {4}, {4}), HasSubstr("INGOT-U352"));
  EXPECT_THAT(refusal("all_gather", attributes(1), {4}, {8}), HasSubstr("INGOT-U332"));
  EXPECT_THAT(refusal("reduce_scatter", attributes(1, {{"reduction", sum}}), {4}, {2}),
              HasSubstr("INGOT-U332"));
  EXPECT_THAT(refusal("reduce_scatter", attributes(1, {{"reduction", sum}}), {}, {}),
              HasSubstr("INGOT-U332"));
  EXPECT_THAT(refusal("broadcast", attributes(1, {{"source", int64_t{0}}}), {4}, {3}),
              HasSubstr("INGOT-U332"));
  for (const int64_t source : {-1, 1})
    EXPECT_THAT(refusal("broadcast", attributes(1, {{"source", source}}), {4}, {4}), HasSubstr("INGOT-U352"));
  for (const std::string rows : {"5", "3", "2,2", "4,", "-4", "x", "18446744073709551615,5"})
    EXPECT_THAT(refusal("all_to_all", attributes(1, {{"sent", rows}, {"received", rows}}), {4, 2}, {4, 2}),
                HasSubstr("INGOT-U332"))
        << rows;
  EXPECT_EQ(refusal("all_to_all", attributes(1, {{"sent", std::string("4")}, {"received", std::string("4")}}),
                    {4, 2}, {4, 2}),
            "");
  EXPECT_THAT(
      refusal("all_to_all", attributes(1, {{"sent", std::string("4")}, {"received", std::string("4")}}),
              {4, 2}, {4, 3}),
      HasSubstr("INGOT-U332"));
}

// Blocks of the same size may be of tensors of different sizes: 8192 numbers at once, or half of 16384.
TEST(Collectives, NoticeRanksThatDoSomethingElse) {
  struct Choice {
    const char* routine;
    NamedValues more;
    int64_t elements;
  };
  const auto differ = [](const Choice& first, const Choice& second) {
    const Groups groups = connected(2);
    return run_ranks(2, [&](int rank) {
      const Choice& own = rank == 0 ? first : second;
      call(own.routine, groups[static_cast<size_t>(rank)], attributes(2, own.more),
           make_tensor(DType::kF32, {own.elements}), make_tensor(DType::kF32, {own.elements}));
    });
  };
  const NamedValues sum = {{"reduction", std::string("sum")}}, max = {{"reduction", std::string("max")}};
  const NamedValues zero = {{"source", int64_t{0}}}, one = {{"source", int64_t{1}}};
  EXPECT_THAT(differ({"all_reduce", sum, 16'384}, {"all_reduce", sum, 8192}),
              Each(HasSubstr("tensors of other sizes")));
  EXPECT_THAT(differ({"all_reduce", sum, 20'000}, {"all_reduce", sum, 19'999}),
              Each(HasSubstr("tensors of other sizes")));
  EXPECT_THAT(differ({"all_reduce", sum, 4}, {"all_reduce", max, 4}), Each(HasSubstr("another collective")));
  EXPECT_THAT(differ({"broadcast", zero, 4}, {"broadcast", one, 4}), Each(HasSubstr("another collective")));
  EXPECT_THAT(differ({"broadcast", zero, 0}, {"broadcast", one, 0}), Each(HasSubstr("another collective")));
}

TEST(Collectives, NeedAGroupUnlessTheyAreAlone) {
  const Tensor x = tensor_of(DType::kF32, {3}, 0), y = make_tensor(DType::kF32, {3});
  const TensorView from[] = {x.view()}, to[] = {y.view()};
  const auto run = [&](int64_t ranks) {
    const NamedValues given = attributes(ranks, {{"reduction", std::string("sum")}});
    return run_ranks(1, [&](int) {
      find_routine("all_reduce")->run({.inputs = from, .outputs = to, .attributes = given});
    })[0];
  };
  EXPECT_EQ(run(1), "");
  EXPECT_EQ(values_of(y), values_of(x));
  EXPECT_THAT(run(0), HasSubstr("INGOT-U350: all_reduce: no group of ranks is bound to 'tp'"));
  EXPECT_THAT(run(2), HasSubstr("INGOT-U350"));
}

}  // namespace
}  // namespace ingot::core
