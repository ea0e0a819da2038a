// SPDX-License-Identifier: Apache-2.0
#include "support/json_writer.h"

#include <cmath>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace ingot::core {
namespace {

nlohmann::json parsed(std::string_view text) {
  JsonWriter json;
  json.value(text);
  return nlohmann::json::parse(std::move(json).text());
}

TEST(JsonWriter, SeparatesAndNests) {
  JsonWriter json;
  json.begin_object().field("a", 1).key("b").begin_array().value("x").value(true).end_array();
  json.key("c").begin_object().end_object().list("d", std::vector<int64_t>{-1, 2}).end_object();
  EXPECT_EQ(std::move(json).text(), R"({"a":1,"b":["x",true],"c":{},"d":[-1,2]})");
}

TEST(JsonWriter, EscapesWhatJsonCannotHold) {
  const std::string text("quote \" slash \\ line \n zero \0 end", 31);
  EXPECT_EQ(parsed(text), text);
}

TEST(JsonWriter, KeepsTextOfAllLanguages) { EXPECT_EQ(parsed("Größe 尺寸 😀"), "Größe 尺寸 😀"); }

TEST(JsonWriter, ReplacesWhatIsNoText) {
  EXPECT_EQ(parsed("a\xFFz"), "a\uFFFDz");
  EXPECT_EQ(parsed("a\xE5\xB0"), "a\uFFFD\uFFFD");          // cut off
  EXPECT_EQ(parsed("\xC0\xAF"), "\uFFFD\uFFFD");            // overlong
  EXPECT_EQ(parsed("\xED\xA0\x80"), "\uFFFD\uFFFD\uFFFD");  // a surrogate
}

TEST(JsonWriter, KnowsNoInfinity) {
  JsonWriter json;
  json.begin_array().value(0.5).value(std::nan("")).value(INFINITY).end_array();
  EXPECT_EQ(std::move(json).text(), "[0.5,null,null]");
}

}  // namespace
}  // namespace ingot::core
