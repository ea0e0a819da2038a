// SPDX-License-Identifier: Apache-2.0
#include "report/page.h"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include "report/page_data.h"
#include "support/error.h"

namespace ingot::core {
namespace report {
namespace {

constexpr char kPage[] =
#include "report/page.html.inc"
    ;
constexpr char kStyle[] =
#include "report/page.css.inc"
    ;

void add_fact(Data& facts, const std::string& name, const std::string& value) {
  if (value.empty()) return;
  Data fact;
  fact.set("name", name);
  fact.set("value", value);
  facts << fact;
}

std::string kernels_text(const Json& build, const Json& inspect) {
  if (build.empty()) return fmt::format("{} distinct", array_of(inspect, "kernels").size());
  return fmt::format("{:.0f}, {:.0f} distinct, {:.0f} of them found in a cache", number_of(build, "kernels"),
                     number_of(build, "distinct_kernels"), number_of(build, "reused_kernels"));
}

std::string weights_text(const Json& inspect) {
  double bytes = 0;
  for (const Json& weight : array_of(inspect, "weights"))
    bytes += weight.value("kept", false) ? number_of(weight, "bytes") : 0.0;
  return fmt::format("{} of the model, kept in {} ({} form)", array_of(inspect, "sources").size(),
                     readable_bytes(bytes), text_of(inspect, "weights_form"));
}

std::string build_text(const Json& build) {
  if (build.empty()) return "";
  return fmt::format("in {:.2f} s{}", number_of(build, "seconds"),
                     build.value("is_from_cache", false) ? ", found in a cache" : "");
}

Data facts_of(const Json& build, const Json& inspect) {
  Data facts = empty_list();
  add_fact(facts, "target", text_of(inspect, "target"));
  add_fact(facts, "made from", text_of(inspect, "origin"));
  add_fact(facts, "built", build_text(build));
  add_fact(facts, "kernels", kernels_text(build, inspect));
  add_fact(facts, "weights", weights_text(inspect));
  add_fact(facts, "arena", readable_bytes(number_of(object_of(inspect, "main"), "arena_bytes")));
  add_fact(facts, "file", number_of(inspect, "bytes") > 0 ? readable_bytes(number_of(inspect, "bytes")) : "");
  add_fact(facts, "tuning", text_of(object_of(build, "tuning"), "note"));
  for (const auto& [key, value] : object_of(inspect, "metadata").items())
    add_fact(facts, "metadata " + key, value.get<std::string>());
  return facts;
}

std::string range_text(const Json& range) {
  const int64_t low = integer_of(range.at(0)), high = integer_of(range.at(1));
  if (low == high) return std::to_string(low);
  return fmt::format("{}..{}", low, high == INT64_MAX ? "" : std::to_string(high));
}

Data ports_of(const Json& inspect) {
  Data list = empty_list();
  for (const auto& [field, role] :
       {std::pair("inputs", "input"), {"outputs", "output"}, {"states", "state"}}) {
    for (const Json& port : array_of(inspect, field)) {
      std::vector<std::string> dims, ranges;
      for (const Json& dim : array_of(port, "dims")) dims.push_back(dim.get<std::string>());
      for (const Json& range : array_of(port, "ranges")) ranges.push_back(range_text(range));
      Data row;
      row.set("role", role);
      row.set("name", text_of(port, "name"));
      row.set("dtype", text_of(port, "dtype"));
      row.set("dims", fmt::format("{}", fmt::join(dims, ", ")));
      row.set("ranges", fmt::format("{}", fmt::join(ranges, ", ")));
      list << row;
    }
  }
  return list;
}

Data engine_data(const Json& engine, size_t index, size_t count) {
  const Json &build = object_of(engine, "build"), &inspect = object_of(engine, "inspect");
  Data data;
  data.set("id", fmt::format("engine-{}", index));
  data.set("heading", count == 1 ? "Engine" : fmt::format("Engine {}", index));
  data.set("facts", facts_of(build, inspect));
  data.set("ports", ports_of(inspect));
  add_passes(data, build);
  add_kernels(data, inspect);
  add_memory(data, inspect);
  add_times(data, build, object_of(engine, "profile"));
  return data;
}

Data code_data(const Codes& codes, const Explain& explain) {
  Data list = empty_list();
  for (const std::string& code : codes) {
    const char* page = explain(code);
    Data row;
    row.set("code", code);
    row.set("page", page != nullptr ? page : "This version has no page on it.");
    list << row;
  }
  return list;
}

std::string title_of(const Json& report) {
  std::string title = text_of(report, "title");
  const Json& engines = array_of(report, "engines");
  if (title.empty() && !engines.empty()) title = text_of(object_of(engines[0], "inspect"), "name");
  return title.empty() ? "model" : title;
}

Data page_data(const Json& report, const Explain& explain) {
  const Json segments = segments_of(report);
  const Json& engines = array_of(report, "engines");
  Codes codes;
  Data page, list = empty_list(), breaks = empty_list();
  for (size_t i = 0; i < engines.size(); ++i) list << engine_data(engines[i], i, engines.size());
  for (const Json& each : array_of(report, "breaks")) breaks << Data("text", each.get<std::string>());
  page.set("title", title_of(report));
  page.set("totals", totals_of(segments));
  page.set("style", kStyle);
  page.set("version", INGOT_VERSION);
  page.set("segments", segment_data(segments, codes));
  page.set("has_breaks", breaks.is_non_empty_list());
  page.set("breaks", breaks);
  page.set("engines", list);
  page.set("has_codes", !codes.empty());
  page.set("codes", code_data(codes, explain));
  return page;
}

// Text between tags and in quoted attributes. Control characters, which HTML does not allow, become U+FFFD.
std::string escaped(const std::string& text) {
  std::string safe;
  safe.reserve(text.size());
  for (size_t i = 0; i < text.size(); ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    const bool is_c1 = byte == 0xC2 && i + 1 < text.size() && static_cast<unsigned char>(text[i + 1]) < 0xA0;
    const bool is_control = (byte < 0x20 && byte != '\n' && byte != '\t') || byte == 0x7F;
    if (is_c1) ++i;
    if (is_c1 || is_control) {
      safe += "\xEF\xBF\xBD";
    } else if (byte == '&') {
      safe += "&amp;";
    } else if (byte == '<') {
      safe += "&lt;";
    } else if (byte == '>') {
      safe += "&gt;";
    } else if (byte == '"') {
      safe += "&quot;";
    } else if (byte == '\'') {
      safe += "&#39;";
    } else {
      safe += text[i];
    }
  }
  return safe;
}

std::string render(const Data& page) {
  kainjow::mustache::mustache layout{kPage};
  if (!layout.is_valid()) throw InternalError("the template of report pages: " + layout.error_message());
  layout.set_custom_escape(&escaped);
  return layout.render(page);
}

}  // namespace
}  // namespace report

std::string report_page(std::string_view json, const Explain& explain) {
  try {
    return report::render(report::page_data(report::Json::parse(json), explain));
  } catch (const report::Json::exception& error) {
    throw UserError("INGOT-U039", fmt::format("these are not the data of a report: {}", error.what()),
                    "pass what ingot_report_page in ingot/build.h describes");
  }
}

}  // namespace ingot::core
