// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <cmath>

#include <fmt/core.h>

#include "report/page_data.h"
#include "support/error.h"

namespace ingot::core::report {
namespace {

constexpr size_t kMostNesting = 16;  // of programs, as in engine files
constexpr std::string_view kPrefix = "INGOT-";
constexpr size_t kCodeLength = kPrefix.size() + 4;  // a letter and three digits

bool is_digit(char c) { return c >= '0' && c <= '9'; }

bool is_code(std::string_view text) {
  const char letter = text[kPrefix.size()];
  return letter >= 'A' && letter <= 'Z' && std::ranges::all_of(text.substr(kPrefix.size() + 1), is_digit);
}

// Throws Json::exception unless the field, if there is one, is a `Kind`.
template <typename Kind>
const Json& field_of(const Json& object, const char* name, const Json& nothing) {
  const auto found = object.find(name);
  if (found == object.end() || found->is_null()) return nothing;
  found->template get_ref<const Kind&>();
  return *found;
}

void add_program(std::vector<TitledProgram>& programs, const std::string& title, const Json& program,
                 size_t depth) {
  if (depth > kMostNesting)
    throw UserError("INGOT-U039", fmt::format("programs are nested more than {} deep", kMostNesting));
  programs.push_back({title, &program});
  for (const Json& nested : array_of(program, "nested"))
    add_program(programs, fmt::format("{}, {}", title, text_of(nested, "name")), nested, depth + 1);
}

}  // namespace

std::string text_of(const Json& object, const char* name) { return object.value(name, std::string()); }

double number_of(const Json& object, const char* name) {
  const auto found = object.find(name);
  return found == object.end() || found->is_null() ? 0.0 : found->get<double>();
}

int64_t integer_of(const Json& value) {
  if (!value.is_number_integer())
    throw UserError("INGOT-U039", "an index or a size in the data of a report is not an integer");
  return value.get<int64_t>();
}

const Json& array_of(const Json& object, const char* name) {
  static const Json kNothing = Json::array();
  return field_of<Json::array_t>(object, name, kNothing);
}

const Json& object_of(const Json& object, const char* name) {
  static const Json kNothing = Json::object();
  return field_of<Json::object_t>(object, name, kNothing);
}

std::string readable_bytes(double bytes) {
  constexpr std::array kUnits = {"bytes", "KiB", "MiB", "GiB", "TiB"};
  size_t unit = 0;
  while (bytes >= 1024 && unit + 1 < kUnits.size()) bytes /= 1024, ++unit;
  return unit == 0 ? fmt::format("{:.0f} bytes", bytes) : fmt::format("{:.2f} {}", bytes, kUnits[unit]);
}

std::string readable_count(double count) { return std::isfinite(count) ? fmt::format("{:.0f}", count) : ""; }

std::string short_line(std::string_view line) {
  for (const std::string_view folder : {"/site-packages/", "/dist-packages/"}) {
    const size_t found = line.rfind(folder);
    if (found != std::string_view::npos) return std::string(line.substr(found + folder.size()));
  }
  if (!line.starts_with('/')) return std::string(line);
  const std::string_view path = line.substr(0, line.rfind(':'));
  const size_t file = path.rfind('/');
  const size_t folder = file == 0 ? std::string_view::npos : path.rfind('/', file - 1);
  return std::string(line.substr(folder == std::string_view::npos ? 0 : folder + 1));
}

Data codes_in(std::string_view text, Codes& codes) {
  Data found = empty_list();
  for (size_t at = text.find(kPrefix); at != std::string_view::npos; at = text.find(kPrefix, at + 1)) {
    const std::string_view code = text.substr(at, kCodeLength);
    if (code.size() < kCodeLength || !is_code(code)) continue;
    codes.emplace(code);
    found << Data("code", std::string(code));
  }
  return found;
}

std::vector<TitledProgram> programs_of(const Json& inspect) {
  std::vector<TitledProgram> programs;
  for (const char* name : {"main", "init"}) {
    const Json& program = object_of(inspect, name);
    if (!program.empty()) add_program(programs, fmt::format("program {}", name), program, 0);
  }
  return programs;
}

}  // namespace ingot::core::report
