// SPDX-License-Identifier: Apache-2.0
// Counters of engines and of the process's cache as text for Prometheus (exposition format 0.0.4).
#include <set>
#include <span>
#include <vector>

#include <fmt/format.h>

#include "api/runtime/checks.h"
#include "api/runtime/guard.h"
#include "api/runtime/handles.h"
#include "api/runtime/host_access.h"
#include "support/error.h"
#include "support/utf8.h"

using namespace ingot::core;

namespace {

struct NamedEngine {
  std::string label;  // engine="NAME", escaped
  const Engine& engine;
  EngineCounters::Totals totals;
};

std::string label_of(std::string_view key, std::string_view value) {
  std::string text;
  for (const char each : value) {
    if (each == '\\' || each == '"') text += '\\';
    text += each == '\n' ? std::string("\\n") : std::string(1, each);
  }
  return fmt::format("{}=\"{}\"", key, text);
}

std::vector<NamedEngine> read_engines(std::span<const ingot_engine* const> engines,
                                      std::span<const char* const> names) {
  std::vector<NamedEngine> result;
  std::set<std::string_view> known;
  for (size_t i = 0; i < engines.size(); ++i) {
    api::require(engines[i], "engines");
    api::require(names[i], "names");
    if (!is_utf8(names[i])) throw UserError("INGOT-U002", "the name of an engine is not UTF-8");
    if (!known.insert(names[i]).second)
      throw UserError("INGOT-U002", fmt::format("two engines have the name '{}'", names[i]),
                      "give each engine a name of its own");
    const Engine& engine = *api::runnable(*engines[i]);
    result.push_back({label_of("engine", names[i]), engine, engine.counters().totals()});
  }
  return result;
}

class Text {
 public:
  void begin(std::string_view name, std::string_view type, std::string_view help) {
    name_ = name;
    fmt::format_to(std::back_inserter(text_), "# HELP {} {}\n# TYPE {} {}\n", name, help, name, type);
  }
  void add(std::string_view labels, uint64_t value) {
    fmt::format_to(std::back_inserter(text_), "{}{{{}}} {}\n", name_, labels, value);
  }
  std::string take() { return std::move(text_); }

 private:
  std::string_view name_;
  std::string text_;
};

struct Family {
  const char *name, *type, *help;
  uint64_t EngineCounters::Totals::* value;
};
using Totals = EngineCounters::Totals;
constexpr Family kFamilies[] = {
    {"ingot_calls_total", "counter", "Calls, failed ones included.", &Totals::calls},
    {"ingot_plan_cache_hits_total", "counter", "Sizes that a context had a plan for.", &Totals::plan_hits},
    {"ingot_plan_cache_misses_total", "counter", "Sizes that were planned.", &Totals::plan_misses},
    {"ingot_plan_cache_evictions_total", "counter", "Plans that made room for others.",
     &Totals::plan_evictions},
    {"ingot_contexts", "gauge", "Contexts.", &Totals::contexts},
    {"ingot_cached_plans", "gauge", "Plans that contexts hold.", &Totals::cached_plans},
    {"ingot_arena_bytes", "gauge", "Memory of contexts for values during a call.", &Totals::arena_bytes},
    {"ingot_scratch_bytes", "gauge", "Memory of contexts inside kernels and routines.",
     &Totals::scratch_bytes},
    {"ingot_state_bytes", "gauge", "Memory of contexts for states, such as key-value caches.",
     &Totals::state_bytes},
};

void write_engines(Text& text, std::span<const NamedEngine> engines) {
  for (const Family& family : kFamilies) {
    text.begin(family.name, family.type, family.help);
    for (const NamedEngine& each : engines) text.add(each.label, each.totals.*family.value);
  }
  text.begin("ingot_weight_bytes", "gauge", "Memory of weights that calls read, mapped files included.");
  for (const NamedEngine& each : engines) text.add(each.label, api::held_bytes(each.engine));
  text.begin("ingot_call_errors_total", "counter", "Calls that failed, by the code of the error.");
  for (const NamedEngine& each : engines) {
    for (const auto& [code, count] : each.engine.counters().errors().values())
      text.add(fmt::format("{},{}", each.label, label_of("code", code)), count);
  }
}

void write_process(Text& text) {
  text.begin("ingot_info", "gauge", "The version of Ingot, and of its C ABI.");
  text.add(fmt::format(R"(version="{}",abi="{}")", ingot_version(), ingot_abi_version()), 1);
  Host* host = api::made_host();
  const CacheCounts counts = host == nullptr ? CacheCounts{} : host->cache().counts();
  text.begin("ingot_cache_requests_total", "counter",
             "Kernels that builds of this process asked its cache for, by where they were found.");
  text.add(R"(found="memory")", counts.from_memory);
  text.add(R"(found="disk")", counts.from_disk);
  text.add(R"(found="server")", counts.from_tiers);
  text.add(R"(found="other_thread")", counts.from_other_threads);
  text.add(R"(found="nowhere")", counts.made);
}

}  // namespace

extern "C" {

ingot_status* ingot_metrics_text(size_t count, const ingot_engine* const* engines, const char* const* names,
                                 ingot_text** text) {
  return api::guard([&] {
    api::require(text, "text");
    if (count > 0) {
      api::require(engines, "engines");
      api::require(names, "names");
    }
    const std::vector<NamedEngine> read = read_engines({engines, count}, {names, count});
    Text result;
    write_process(result);
    write_engines(result, read);
    *text = api::make_text(result.take());
  });
}

}  // extern "C"
