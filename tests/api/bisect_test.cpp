// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include "tests/api/fixtures.h"

namespace ingot::core::testing {
namespace {

const std::string kImageModel = INGOT_SOURCE_DIR "/tests/data/pt2/image.pt2";

struct Judged {
  std::vector<int32_t> answers;  // of the first engines; the last one of all further ones
  size_t engines = 0;
};

int32_t judge_by_list(void* user, ingot_engine* engine) {
  const Owned<ingot_engine> owned(engine);
  auto& judged = *static_cast<Judged*>(user);
  return judged.answers[std::min(judged.engines++, judged.answers.size() - 1)];
}

#if INGOT_HAS_LLVM  // the default device's backend
TEST(BisectTest, NeedsNoOptions) {
  Judged judged{{0}};
  ingot_text* report = nullptr;
  ASSERT_EQ(code_of(ingot_bisect_pt2(kImageModel.c_str(), nullptr, &judge_by_list, &judged, &report)), "");
  EXPECT_EQ(nlohmann::json::parse(text_of(report)),
            nlohmann::json::parse(R"({"outcome": "right", "builds": 2})"));
  EXPECT_EQ(judged.engines, 2);
}
#endif

TEST(BisectTest, EndsWithTheJudge) {
  const ingot_option row{"backend", "null"};
  const ingot_build_options given{
      .struct_size = sizeof(ingot_build_options), .options = &row, .option_count = 1};
  ingot_text* report = nullptr;
  Judged cancels{{0, -1}}, contradicts{{0, 1, 0}};
  EXPECT_EQ(code_of(ingot_bisect_pt2(kImageModel.c_str(), &given, &judge_by_list, &cancels, &report)),
            "INGOT-U010");
  EXPECT_EQ(code_of(ingot_bisect_pt2(kImageModel.c_str(), &given, &judge_by_list, &contradicts, &report)),
            "INGOT-U032");
  EXPECT_EQ(code_of(ingot_bisect_pt2(kImageModel.c_str(), &given, nullptr, nullptr, &report)), "INGOT-U012");
  EXPECT_EQ(code_of(ingot_bisect_pt2("missing.pt2", &given, &judge_by_list, &cancels, &report)).substr(0, 7),
            "INGOT-U");
  EXPECT_EQ(report, nullptr);
}

}  // namespace
}  // namespace ingot::core::testing
