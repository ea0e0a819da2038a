// SPDX-License-Identifier: Apache-2.0
// Calls that torch would never make: a file may contain them, and each is rejected by name.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "support/error.h"
#include "tests/importers/aten/programs.h"

namespace ingot::core::aten::test {
namespace {

using testing::HasSubstr;

struct BadCall {
  std::string target;
  Shape shape;                 // of x, which is the first argument
  std::vector<Argument> more;  // after it
  std::string reason;
};

void PrintTo(const BadCall& call, std::ostream* out) { *out << call.target << ": " << call.reason; }

std::string bad_call_name(const testing::TestParamInfo<BadCall>& info) {
  std::string name = info.param.target + "_" + std::to_string(info.index);
  std::ranges::replace(name, '.', '_');
  return name;
}

std::string refusal(const BadCall& bad) {
  ProgramWriter writer;
  std::vector<Argument> arguments = bad.more;
  arguments.insert(arguments.begin(), Argument{writer.input("x", bad.shape)});
  writer.output(writer.call(bad.target, std::move(arguments), {1}));
  try {
    import_program(writer.program);
  } catch (const UnsupportedError& error) {
    EXPECT_EQ(error.details().code, "INGOT-N520");
    return error.details().message;
  }
  return "";
}

class MalformedCalls : public testing::TestWithParam<BadCall> {};

TEST_P(MalformedCalls, AreRefused) { EXPECT_THAT(refusal(GetParam()), HasSubstr(GetParam().reason)); }

constexpr int64_t kZero = 0, kOne = 1, kTwo = 2, kHuge = INT64_MAX;

std::vector<BadCall> calls() {
  return {
      {"aten.select.int", {}, {{kZero}, {kZero}}, "too few dims"},
      {"aten.slice.Tensor", {}, {{kZero}, {kZero}, {kOne}}, "too few dims"},
      {"aten.slice.Tensor", {4}, {{kZero}, {kZero}, {kTwo}, {kZero}}, "a step that is not positive"},
      {"aten.narrow.default", {}, {{kZero}, {kZero}, {kOne}}, "too few dims"},
      {"aten.unbind.int", {}, {{kZero}}, "too few dims"},
      {"aten.split.Tensor", {}, {{kOne}}, "too few dims"},
      {"aten.glu.default", {}, {{kZero}}, "too few dims"},
      {"aten.sym_size.int", {}, {{kZero}}, "too few dims"},
      {"aten.diff.default", {8}, {{kHuge}}, "too many differences"},
      {"aten.roll.default", {4}, {list({1, 2}), list({0})}, "another number of shifts"},
      {"aten.repeat.default", {2, 3}, {list({2})}, "fewer repeats than dims"},
      {"aten.constant_pad_nd.default", {4}, {list({1, 1, 1, 1})}, "another number of paddings"},
      {"aten.constant_pad_nd.default", {4}, {list({1})}, "another number of paddings"},
      {"aten.flatten.using_ints", {2, 3}, {{kOne}, {kZero}}, "end before they start"},
      {"aten.unflatten.int", {}, {{kZero}, list({1})}, "too few dims"},
      {"aten.permute.default", {2, 3}, {list({0})}, "must list every dim"},
      {"aten.movedim.intlist",
       {2, 3},
       {list({0, 1}), list({0})},
       "different numbers of source and target dims"},
      {"aten.movedim.intlist", {2, 3}, {list({5}), list({0})}, "too few dims"},
      {"aten.movedim.intlist", {2, 3}, {list({0, 0}), list({0, 1})}, "lists a dim twice"},
      {"aten.diagonal.default", {2, 3}, {{kZero}, {kZero}, {kZero}}, "a diagonal of one dim"},
      {"aten.unfold.default", {4}, {{kZero}, {kTwo}, {kZero}}, "empty windows"},
      {"aten.as_strided.default", {4}, {list({2, 2}), list({1})}, "another number of strides"},
      {"aten.max_pool2d.default", {4}, {list({2, 2})}, "a tensor of unexpected rank"},
      {"aten.max_pool2d.default",
       {1, 1, 4, 4},
       {list({2, 2, 2})},
       "another number of entries in kernel_size"},
      {"aten.max_pool2d.default", {1, 1, 4, 4}, {list({-2, 2})}, "negative or very large"},
      {"aten.adaptive_avg_pool2d.default", {1, 1, 4, 4}, {list({2, 2, 2})}, "another number of sizes"},
      {"aten.upsample_nearest2d.default", {1, 1, 4, 4}, {list({8, 8})}, "a result of unexpected rank"},
      {"aten.view.default", {1}, {list({-1, -1})}, "would be"},
      {"aten.new_zeros.default", {1}, {list({-4})}, "would be"},
  };
}

INSTANTIATE_TEST_SUITE_P(Rows, MalformedCalls, testing::ValuesIn(calls()), bad_call_name);

TEST(MalformedCalls, WithTwoTensorsAreRefused) {
  ProgramWriter writer;
  const ValueId x = writer.input("x", {2, 3}), y = writer.input("y", {3});
  const Argument none{None{}};
  const auto refused = [&](const std::string& target, std::vector<Argument> arguments) {
    ProgramWriter own = writer;
    own.output(own.call(target, std::move(arguments), {1}));
    try {
      import_program(own.program);
    } catch (const UnsupportedError& error) {
      return error.details().message;
    }
    return std::string();
  };
  EXPECT_THAT(refused("aten.conv1d.default", {{x}, {y}}), HasSubstr("a kernel of unexpected rank"));
  const ValueId places = writer.input("places", {3, 3}, DType::kI64);
  EXPECT_THAT(refused("aten.gather.default", {{x}, {kOne}, {places}}),
              HasSubstr("fewer elements than there are indices"));
  EXPECT_THAT(refused("aten.scatter.value", {{x}, {kOne}, {places}, {1.0}}),
              HasSubstr("fewer elements than there are indices"));
  EXPECT_THAT(refused("aten.fill.Scalar", {{places}, {1e300}}), HasSubstr("a 64-bit integer"));
  EXPECT_THAT(refused("aten.cat.default", {values({})}), HasSubstr("an empty list to join"));
  EXPECT_THAT(refused("aten.einsum.default", {{std::string("ij->ik")}, values({x})}),
              HasSubstr("a label of the result that no term has"));
  EXPECT_THAT(refused("aten.lstm.input",
                      {{x}, values({x}), values({y, y}), {false}, {kOne}, {0.0}, {false}, {false}, {false}}),
              HasSubstr("a number of states other than two"));
  EXPECT_THAT(refused("aten.gru.input",
                      {{x}, {y}, values({y, y}), {false}, {kOne}, {0.0}, {false}, {false}, {false}}),
              HasSubstr("a state of unexpected rank"));
}

// Views of views are recomputed after a write: each is a step of a recursion, and of the graph.
TEST(MalformedPrograms, LongChainsOfViewsAreRefused) {
  ProgramWriter writer;
  const ValueId x = writer.input("x", {2});
  ValueId view = x;
  for (int i = 0; i < 20'000; ++i) view = writer.call("aten.view.default", {{view}, list({2})}, {2});
  writer.call("aten.add_.Tensor", {{x}, {kOne}}, {2});
  writer.output(writer.call("aten.add.Tensor", {{view}, {kOne}}, {2}));
  EXPECT_THROW(import_program(writer.program), UnsupportedError);
}

TEST(MalformedPrograms, UpdateInputsByWhatTheyAre) {
  ProgramWriter writer;
  const ValueId x = writer.input("x", {2});
  const ValueId changed = writer.call("aten.add_.Tensor", {{x}, {kOne}}, {2});
  writer.output(changed);
  writer.mutation(writer.call("aten.unsqueeze.default", {{changed}, {int64_t{0}}}, {1, 2}), "x");
  EXPECT_THROW(import_program(writer.program), UserError);
}

// torch's functional programs leave it to the caller's copy_ to broadcast and convert.
TEST(MalformedPrograms, UpdatesAreBroadcast) {
  ProgramWriter writer;
  const ValueId x = writer.input("x", {2});
  const ValueId changed = writer.call("aten.add_.Tensor", {{x}, {kOne}}, {2});
  writer.output(changed);
  writer.mutation(writer.call("aten.sum.default", {{changed}}, {}), "x");
  const Imported imported = import_program(writer.program);
  ASSERT_EQ(imported.graph.updates.size(), 1u);
  EXPECT_EQ(imported.graph.updates[0].value->type.shape, (Shape{2}));
}

// A branch of x * x, with the dtypes that the call and its graphs record.
struct RecordedDTypes {
  DType operand, inner_operand, inner_result, result;
};
std::string refusal_of_branch(const RecordedDTypes& dtypes) {
  const auto graph = [&] {
    ProgramWriter inner;
    const ValueId x = inner.input("x", {3}, dtypes.inner_operand);
    inner.output(inner.call("aten.mul.Tensor", {{x}, {x}}, {3}, dtypes.inner_result));
    return Argument{std::make_shared<Graph>(std::move(inner.program.graph))};
  };
  ProgramWriter writer;
  const ValueId condition = writer.input("condition", {}, DType::kBool);
  const ValueId x = writer.input("x", {3}, dtypes.operand);
  writer.output(
      writer.call("higher_order.cond", {{condition}, graph(), graph(), values({x})}, {3}, dtypes.result));
  try {
    import_program(writer.program);
  } catch (const UnsupportedError& error) {
    return error.details().message;
  }
  return "";
}

TEST(MalformedBranches, RecordComplexValuesAsRealOnes) {
  constexpr DType kReal = DType::kF32, kComplex = DType::kC64;
  EXPECT_EQ(refusal_of_branch({kComplex, kComplex, kComplex, kComplex}), "");
  EXPECT_EQ(refusal_of_branch({kReal, kReal, kReal, kReal}), "");
  constexpr const char* kOperand = "records a complex operand as a real one, or a real one as complex";
  EXPECT_THAT(refusal_of_branch({kReal, kComplex, kComplex, kComplex}), HasSubstr(kOperand));
  EXPECT_THAT(refusal_of_branch({kComplex, kReal, kReal, kReal}), HasSubstr(kOperand));
  EXPECT_THAT(refusal_of_branch({kReal, kReal, kReal, kComplex}), HasSubstr("the program recorded"));
  EXPECT_THAT(refusal_of_branch({kComplex, kComplex, kComplex, kReal}), HasSubstr("the program recorded"));
}

}  // namespace
}  // namespace ingot::core::aten::test
