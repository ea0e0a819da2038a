// SPDX-License-Identifier: Apache-2.0
#include "importers/files/json.h"

#include <fmt/format.h>

#include <limits>

#include "support/error.h"

namespace ingot::core {
namespace {

// `kinds` are values of JsonDocument::Kind.
[[noreturn]] void refuse_kind(size_t kind, size_t expected) {
  constexpr std::string_view kNames[] = {"null",   "a bool", "an integer", "a number",
                                         "a text", "a list", "an object"};
  throw UserError("INGOT-U503", fmt::format("the program's JSON has {} where {} is expected", kNames[kind],
                                            kNames[expected]));
}

}  // namespace

const JsonDocument::Entry& Json::entry(JsonDocument::Kind expected) const {
  const JsonDocument::Entry& entry = document_->entries_[index_];
  if (entry.kind != expected) refuse_kind(static_cast<size_t>(entry.kind), static_cast<size_t>(expected));
  return entry;
}

bool Json::boolean() const { return entry(JsonDocument::Kind::kBool).boolean; }
int64_t Json::integer() const { return entry(JsonDocument::Kind::kInteger).integer; }
std::string_view Json::text() const { return document_->text(entry(JsonDocument::Kind::kText)); }

double Json::number() const {
  const JsonDocument::Entry& entry = document_->entries_[index_];
  if (entry.kind == JsonDocument::Kind::kInteger) return static_cast<double>(entry.integer);
  if (entry.kind == JsonDocument::Kind::kText) {
    constexpr double kInfinity = std::numeric_limits<double>::infinity();
    if (text() == "Infinity") return kInfinity;
    if (text() == "-Infinity") return -kInfinity;
    if (text() == "NaN") return std::numeric_limits<double>::quiet_NaN();
  }
  return this->entry(JsonDocument::Kind::kFloat).number;
}

JsonItems Json::items() const {
  entry(JsonDocument::Kind::kList);
  return {*document_, index_};
}

JsonMembers Json::members() const {
  entry(JsonDocument::Kind::kObject);
  return {*document_, index_};
}

std::optional<Json> Json::find(std::string_view key) const {
  for (const JsonMember member : members()) {
    if (member.key != key) continue;
    const bool is_null = document_->entries_[member.value.index_].kind == JsonDocument::Kind::kNull;
    return is_null ? std::nullopt : std::optional(member.value);
  }
  return std::nullopt;
}

Json Json::at(std::string_view key) const {
  if (const std::optional<Json> value = find(key)) return *value;
  throw UserError("INGOT-U503", fmt::format("the program's JSON lacks the member '{}'", key));
}

JsonMember Json::only_member() const {
  const JsonMembers all = members();
  if (all.size() != 1)
    throw UserError("INGOT-U503",
                    fmt::format("a union of the program's JSON has {} members, not one", all.size()));
  return *all.begin();
}

}  // namespace ingot::core
