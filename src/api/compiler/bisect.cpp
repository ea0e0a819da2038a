// SPDX-License-Identifier: Apache-2.0
// Searches over builds of a .pt2 file.
#include "compiler/bisect.h"

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "api/compiler/build.h"
#include "api/compiler/model_file.h"
#include "api/runtime/checks.h"
#include "api/runtime/guard.h"
#include "api/runtime/handles.h"
#include "support/error.h"
#include "support/json_writer.h"

namespace ingot::core::api {
namespace {

// The caller's options with others in their place.
class ChangedOptions {
 public:
  explicit ChangedOptions(const ingot_build_options& given) : given_(given) {}

  std::string value(std::string_view name, const std::string& otherwise) const {
    std::string found = otherwise;  // the last one counts, as in every build
    for (size_t i = 0; i < given_.option_count; ++i) {
      if (given_.options[i].name == name) found = given_.options[i].value;
    }
    return found;
  }
  void set(const char* name, std::string value) { rows_.emplace_back(name, std::move(value)); }
  // Refers to this object.
  ingot_build_options options() {
    all_.assign(given_.options, given_.options + given_.option_count);
    for (const auto& [name, value] : rows_) all_.push_back({name, value.c_str()});
    ingot_build_options changed = given_;
    changed.struct_size = sizeof(changed);
    changed.options = all_.data();
    changed.option_count = all_.size();
    changed.output = nullptr;
    return changed;
  }

 private:
  const ingot_build_options& given_;
  std::vector<std::pair<const char*, std::string>> rows_;
  std::vector<ingot_option> all_;
};

TriedBuild try_build(const Model& model, const ingot_build_options& given, const std::string& limit,
                     const std::string& disabled, ingot_judge judge, void* user) {
  ChangedOptions changed(given);
  changed.set("bisect_passes", limit);
  // An engine from the cache has no passes to report, and those of a search are of no use to others.
  changed.set("reuse_cached_engines", "false");
  changed.set("cache_built_engines", "false");
  const std::string entries = changed.value("disable_passes", "");
  if (!disabled.empty()) changed.set("disable_passes", entries.empty() ? disabled : entries + "," + disabled);
  const ingot_build_options options = changed.options();
  TriedBuild tried;
  const int32_t judgement = judge(user, build(model, &options, tried.passes).release());
  if (judgement < 0) throw UserError("INGOT-U010", "the search was cancelled");
  tried.is_wrong = judgement > 0;
  return tried;
}

const char* name_of(Bisection::Outcome outcome) {
  switch (outcome) {
    case Bisection::Outcome::kRight:
      return "right";
    case Bisection::Outcome::kWrongBeforePasses:
      return "wrong_before_passes";
    case Bisection::Outcome::kRewrite:
      break;
  }
  return "rewrite";
}

std::string to_json(const Bisection& found) {
  JsonWriter json;
  json.begin_object();
  json.field("outcome", name_of(found.outcome));
  json.field("builds", found.builds);
  if (found.outcome == Bisection::Outcome::kRewrite) {
    json.field("pass", found.pass);
    json.field("rule", found.rewrite.rule);
    json.field("node", found.rewrite.node);
    json.field("op", found.rewrite.op);
    json.field("source", found.rewrite.source);
    json.field("bisect_passes", found.limit);
    json.field("disable_passes", found.disable);
    json.field("is_right_without", found.is_right_without);
  }
  json.end_object();
  return std::move(json).text();
}

}  // namespace
}  // namespace ingot::core::api

using namespace ingot::core;

extern "C" ingot_status* ingot_bisect_pt2(const char* path, const ingot_build_options* options,
                                          ingot_judge judge, void* user, ingot_text** report) {
  return api::guard([&] {
    api::require(path, "path");
    api::require(reinterpret_cast<const void*>(judge), "judge");
    api::require(report, "report");
    api::check_options(options, nullptr);
    const ingot_build_options given = api::copy_of(options);
    const api::Model model = api::read_model_file(path);
    const auto build = [&](const std::string& limit, const std::string& disabled) {
      return api::try_build(model, given, limit, disabled, judge, user);
    };
    const std::string whole = api::ChangedOptions(given).value("bisect_passes", "-1");
    *report = api::make_text(api::to_json(bisect(whole, build)));
  });
}
