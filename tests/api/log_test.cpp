// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include "ingot/context.h"
#include "tests/api/fixtures.h"

namespace ingot::core::testing {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;

struct Messages {
  std::vector<std::string> warnings, infos;

  static void add(void* user, int32_t level, const char* message) {
    auto& own = *static_cast<Messages*>(user);
    (level == INGOT_LOG_WARNING ? own.warnings : own.infos).emplace_back(message);
  }
};

class LogTest : public ::testing::Test {
 protected:
  ~LogTest() override { ingot_status_free(ingot_set_logger(nullptr, nullptr, INGOT_LOG_OFF)); }

  void listen(int32_t level) { EXPECT_EQ(code_of(ingot_set_logger(&Messages::add, &messages_, level)), ""); }
  void run(int64_t rows) {
    std::vector<float> values(static_cast<size_t>(rows));
    const int64_t shape[] = {1, rows};
    const ingot_tensor input{values.data(), INGOT_F32, 2, shape, nullptr};
    FloatOutputs outputs;
    EXPECT_EQ(code_of(ingot_context_run(context_.get(), 1, &input, FloatOutputs::allocate, &outputs)), "");
  }

  EngineOnDisk file_{echo_engine()};
  Messages messages_;
  Owned<ingot_engine> engine_ = load(file_.path());
  Owned<ingot_context> context_ = context_of(engine_.get());
};

TEST_F(LogTest, TellsOfEnginesAndNewShapes) {
  listen(INGOT_LOG_INFO);
  load(file_.path());
  EXPECT_THAT(messages_.infos, Contains(HasSubstr("opened the engine 'echo'")));
  run(3);
  EXPECT_THAT(messages_.infos, Contains(HasSubstr("planned x[1, 3] in ")));
  const size_t before = messages_.infos.size();
  run(3);
  EXPECT_EQ(messages_.infos.size(), before);
}

TEST_F(LogTest, WarnsOnceOfTooManyShapes) {
  listen(INGOT_LOG_WARNING);
  for (int64_t rows = 1; rows <= 40; ++rows) run(rows);
  EXPECT_EQ(messages_.warnings.size(), 1u);
  EXPECT_THAT(messages_.warnings, Contains(HasSubstr("more than 32 shapes")));
  EXPECT_TRUE(messages_.infos.empty());
}

TEST_F(LogTest, WarnsOfThreadsThatAreNotThere) {
  listen(INGOT_LOG_WARNING);
  const ingot_context_options options{.struct_size = sizeof(ingot_context_options), .threads = 1024};
  ingot_context* context = nullptr;
  ASSERT_EQ(code_of(ingot_context_create_with(engine_.get(), &options, &context)), "");
  const Owned<ingot_context> owner(context);
  EXPECT_THAT(messages_.warnings, Contains(HasSubstr("1024 threads were asked for")));
}

TEST_F(LogTest, IsSilentUnlessAsked) {
  ::testing::internal::CaptureStderr();
  run(5);
  EXPECT_EQ(::testing::internal::GetCapturedStderr(), "");
  listen(INGOT_LOG_OFF);
  run(6);
  EXPECT_TRUE(messages_.infos.empty() && messages_.warnings.empty());
  EXPECT_EQ(code_of(ingot_set_logger(&Messages::add, &messages_, 3)), "INGOT-U016");
  EXPECT_EQ(code_of(ingot_set_logger(&Messages::add, &messages_, -1)), "INGOT-U016");
}

TEST_F(LogTest, GoesToAFunctionInCpp) {
  static std::string last;
  ingot::set_logger([](ingot::LogLevel, std::string_view message) { last = message; },
                    ingot::LogLevel::kInfo);
  run(7);
  EXPECT_THAT(last, HasSubstr("planned x[1, 7]"));
  ingot::set_logger(nullptr, ingot::LogLevel::kOff);
  run(8);
  EXPECT_THAT(last, Not(HasSubstr("x[1, 8]")));
}

}  // namespace
}  // namespace ingot::core::testing
