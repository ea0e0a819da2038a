// SPDX-License-Identifier: Apache-2.0
// Report pages: whatever the data say, the page is whole and shows it as text.
#include "report/page.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <regex>
#include <string>
#include <vector>

#include "support/error.h"

namespace ingot::core {
namespace {

using Json = nlohmann::json;
using ::testing::HasSubstr;
using ::testing::Not;

std::string page_of(const Json& report) {
  return report_page(report.dump(), [](const std::string& code) {
    return code == "INGOT-N520" ? "A node is <unsupported>." : nullptr;
  });
}

// Each text that a report can hold is `text`.
Json report_with(const std::string& text) {
  const Json node = {{"name", text},   {"op", text},   {"source", text},
                     {"reason", text}, {"slow", text}, {"precision", text}};
  const Json step = {{"name", text}, {"kind", text},       {"kernel", text}, {"image", 0},
                     {"nodes", {0}}, {"operations", text}, {"bytes", text}};
  const Json buffer = {{"name", text}, {"type", text}, {"bytes", 64},
                       {"offset", 0},  {"first", 0},   {"last", 1}};
  const Json program = {{"name", text},        {"arena_bytes", 64}, {"live_bytes", 64},
                        {"buffer_bytes", 128}, {"steps", {step}},   {"arena", {buffer}}};
  Json outer = program;
  outer["nested"] = {program};
  const Json port = {{"name", text}, {"dtype", text}, {"dims", {text}}, {"ranges", {{1, 4}}}};
  const Json rewrite = {{"rule", text}, {"node", text}, {"op", text}, {"source", text}};
  const Json pass = {{"name", text},     {"program", text}, {"changed", true},  {"nodes_before", 3},
                     {"nodes_after", 2}, {"seconds", 0.5},  {"made", {rewrite}}};
  const Json refusal = {{"region", text}, {"node", text}, {"reason", text}, {"count", 2}};
  const Json timed = {
      {"name", text}, {"median_ns", 1000}, {"share", 1.0}, {"operations", 8}, {"operators", {node}}};
  return {{"title", text},
          {"breaks", {text}},
          {"segments",
           {{{"backend", text}, {"nodes", {node}}, {"engine_ms", 1.0}, {"torch_ms", 2.0}},
            {{"backend", "torch"}, {"nodes", {node}}}}},
          {"engines",
           {{{"inspect",
              {{"name", text},
               {"target", text},
               {"origin", text},
               {"metadata", {{text, text}}},
               {"inputs", {port}},
               {"weights_form", text},
               {"kernels", {{{"name", text}, {"bytes", 100}}}},
               {"nodes", {node}},
               {"main", outer}}},
             {"build",
              {{"passes", {pass}},
               {"not_fused", {refusal}},
               {"phases", {{{"name", text}, {"seconds", 0.5}}}},
               {"tuning", {{"note", text}}}}},
             {"profile", {{"steps", {timed}}, {"median_ns", 1000}, {"runs", 2}, {"threads", 1}}}}}}};
}

// The elements of a page in their order, without their content.
std::vector<std::string> tags_of(const std::string& page) {
  const std::regex tag("<(/?[a-z][a-z0-9]*)");
  std::vector<std::string> tags;
  for (std::sregex_iterator found(page.begin(), page.end(), tag), end; found != end; ++found)
    tags.push_back((*found)[1]);
  return tags;
}

TEST(ReportPage, TextsOfModelsAddNoElement) {
  const std::vector<std::string> plain = tags_of(page_of(report_with("text")));
  EXPECT_GT(plain.size(), 200u);
  for (const char* text :
       {"</script><img src=x onerror=alert(1)>", "\" onload=\"alert(1)", "' x='", "<!--", "]]>", "</style>",
        "{{title}}", "{{{style}}}", "{{#engines}}", "&lt;b&gt;", "</code></td></table>"})
    EXPECT_EQ(tags_of(page_of(report_with(text))), plain) << text;
}

TEST(ReportPage, TextsAreShownAsTheyAre) {
  EXPECT_THAT(page_of(report_with("a<b & \"c\"")), HasSubstr("a&lt;b &amp; &quot;c&quot;"));
  EXPECT_THAT(page_of(report_with("{{title}}")), HasSubstr("<code>{{title}}</code>"));
}

TEST(ReportPage, ControlCharactersAreReplaced) {
  const std::string page = page_of(report_with(std::string("a\0b\x1B\x7F\xC2\x80\xC3\xA4", 9)));
  EXPECT_THAT(page, HasSubstr("a\uFFFDb\uFFFD\uFFFD\uFFFD\u00E4"));
  EXPECT_EQ(page.find_first_of(std::string("\0\x1B\x7F", 3)), std::string::npos);
}

TEST(ReportPage, ReasonsLinkToTheirPages) {
  Json report = report_with("text");
  report["segments"][1]["nodes"][0]["code"] = "INGOT-N520";
  report["segments"][1]["nodes"][0]["reason"] = "complex numbers";
  report["segments"][0]["nodes"][0]["slow"] = "[INGOT-N999] unknown";
  const std::string page = page_of(report);
  EXPECT_THAT(page, HasSubstr("<a href=\"#INGOT-N520\">INGOT-N520</a>"));
  EXPECT_THAT(page, HasSubstr("<h3 id=\"INGOT-N520\">"));
  EXPECT_THAT(page, HasSubstr("A node is &lt;unsupported&gt;."));
  EXPECT_THAT(page, HasSubstr("<h3 id=\"INGOT-N999\">"));
  EXPECT_THAT(page, HasSubstr("which torch runs: complex numbers"));
}

TEST(ReportPage, CodesAreRecognizedWhole) {
  for (const char* text : {"INGOT-", "INGOT-N52", "INGOT-n520", "INGOT-N52x", "INGOT-\xC3\xA4 12"}) {
    Json report = report_with("text");
    report["segments"][0]["nodes"][0]["reason"] = text;
    EXPECT_THAT(page_of(report), Not(HasSubstr("id=\"codes\""))) << text;
  }
}

TEST(ReportPage, WhatIsNotKnownIsLeftOut) {
  for (const char* json :
       {"{}", R"({"engines": null})", R"({"engines": [{}]})",
        R"({"engines": [{"build": null, "inspect": {}}]})", R"({"segments": [], "engines": []})"}) {
    const std::string page = report_page(json, [](const std::string&) { return nullptr; });
    EXPECT_THAT(page, HasSubstr("</html>")) << json;
    EXPECT_THAT(page, HasSubstr("100 %")) << json;
  }
}

TEST(ReportPage, OfAnEngineAloneItsNodesAreTheSegment) {
  Json report = report_with("text");
  report.erase("segments");
  report["engines"][0]["build"]["slow"] = {
      {{"node", "text"}, {"reason", "sorts"}, {"own_ns", 2e6}, {"peer_ns", 1e6}}};
  EXPECT_THAT(page_of(report), HasSubstr("slow: sorts; predicted 2 ms per run, torch 1 ms"));
  EXPECT_THAT(page_of(report), HasSubstr("1 of 1"));
}

// A value of another kind in place of each value: an error with the code, or a page, but nothing else.
void replace_each(Json& report, Json& part, size_t& errors) {
  const Json kept = part;
  for (const Json& other :
       {Json(), Json("text"), Json(-7), Json(1e300), Json(true), Json::array({-1}), Json::object()}) {
    part = other;
    try {
      EXPECT_THAT(page_of(report), HasSubstr("</html>"));
    } catch (const UserError& error) {
      EXPECT_EQ(error.details().code, "INGOT-U039");
      ++errors;
    }
  }
  part = kept;
  if (!part.is_structured()) return;
  for (auto& item : part.items()) replace_each(report, item.value(), errors);
}

TEST(ReportPage, DataOfAnotherKindAreErrors) {
  Json report = report_with("text");
  size_t errors = 0;
  replace_each(report, report, errors);
  EXPECT_GT(errors, 100u);
}

TEST(ReportPage, TextThatIsNoJsonIsAnError) {
  for (const char* text : {"", "{", "[1", "\xFF", "{\"title\": 1e999}"})
    EXPECT_THROW(report_page(text, [](const std::string&) { return nullptr; }), UserError) << text;
}

TEST(ReportPage, ProgramsThatNestTooDeeplyAreAnError) {
  Json program = {{"steps", Json::array()}};
  for (int i = 0; i < 1000; ++i) program = {{"nested", {std::move(program)}}};
  EXPECT_THROW(page_of({{"engines", {{{"inspect", {{"main", program}}}}}}}), UserError);
}

}  // namespace
}  // namespace ingot::core
