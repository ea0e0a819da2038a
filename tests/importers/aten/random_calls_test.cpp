// SPDX-License-Identifier: Apache-2.0
// Every converter, called in ways that torch never would: each call is imported, or rejected by one of the
// user's errors, in little time and memory.
#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <ctime>
#include <string>

#include <sys/resource.h>

#include "backends/null/compile/backend.h"
#include "compiler/compile.h"
#include "importers/aten/converters/converters.h"
#include "importers/aten/import.h"
#include "importers/aten/program/aten_text.h"
#include "ir/verify.h"
#include "support/error.h"
#include "tests/importers/aten/random_calls.h"

namespace ingot::core::aten::test {
namespace {

constexpr int kCalls = 150;
constexpr int kCompiled = 50;  // each so many-th is compiled too
constexpr double kMostSeconds = 5;

// "" where all is well.
std::string problem_of(const Program& program, bool compiles) {
  try {
    verify(import_program(program, {.random_seed = 0}).graph, "importing");
    const Backend* const backends[] = {&null::backend()};
    CompileOptions options;
    options.target.backend = "null";
    options.random_seed = 0;
    if (compiles) compile(program, options, backends);
  } catch (const Error& error) {
    if (error.kind() == ErrorKind::kInternal) return error.what();
  } catch (const std::exception& error) {
    return error.what();
  }
  return {};
}

double processor_seconds() { return static_cast<double>(std::clock()) / CLOCKS_PER_SEC; }

long most_kilobytes() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return usage.ru_maxrss;
}

// Calls of an operator, the same at each run.
void try_calls(const std::string& target) {
  std::minstd_rand random(static_cast<uint32_t>(std::hash<std::string>()(target)));
  for (int i = 0; i < kCalls; ++i) {
    const Program program = random_program(target, random);
    const double start = processor_seconds();
    EXPECT_EQ(problem_of(program, i % kCompiled == 0), "") << to_string(program);
    EXPECT_LT(processor_seconds() - start, kMostSeconds) << to_string(program);
  }
}

class RandomConverter : public testing::TestWithParam<const Converter*> {};

// "aten.add.Tensor" -> "aten.add_.Tensor".
std::string in_place(std::string target) {
  target.insert(target.rfind('.'), "_");
  return target;
}

TEST_P(RandomConverter, RefusesOrImports) {
  const std::string target(GetParam()->target);
  const long before = most_kilobytes();  // of other tests in this process
  try_calls(target);
  if (find_schema(in_place(target))) try_calls(in_place(target));
  EXPECT_LT(most_kilobytes() - before, 1L << 20) << target;
}

std::string name_of(const testing::TestParamInfo<const Converter*>& info) {
  std::string name(info.param->target);
  std::ranges::replace_if(name, [](unsigned char letter) { return std::isalnum(letter) == 0; }, '_');
  return name;
}

INSTANTIATE_TEST_SUITE_P(All, RandomConverter, testing::ValuesIn(all_converters()), name_of);

}  // namespace
}  // namespace ingot::core::aten::test
