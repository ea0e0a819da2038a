// SPDX-License-Identifier: Apache-2.0
// Sessions and what their caches hold.
#include "api/runtime/session.h"

#include <algorithm>
#include <chrono>

#include "api/runtime/checks.h"
#include "api/runtime/guard.h"
#include "api/runtime/handles.h"
#include "api/runtime/host_access.h"
#include "support/json_writer.h"
#include "support/paths.h"

using namespace ingot::core;

namespace {

constexpr std::chrono::milliseconds kLongestWait = std::chrono::hours(24 * 365);

constexpr size_t kFirstSessionOptions = offsetof(ingot_session_options, cache_bytes) + sizeof(uint64_t);

std::string describe_cache(Cache& cache) {
  const CacheCounts counts = cache.counts();
  const MemoryStore::Size memory = cache.memory().size();
  JsonWriter json;
  json.begin_object();
  json.field("made", counts.made);
  json.field("from_memory", counts.from_memory);
  json.field("from_disk", counts.from_disk);
  json.field("from_tiers", counts.from_tiers);
  json.field("from_other_threads", counts.from_other_threads);
  json.field("entries", memory.entries);
  json.field("compressed", memory.compressed);
  json.field("bytes", memory.bytes);
  json.field("capacity", memory.capacity);
  json.field("evicted", memory.evicted);
  const std::shared_ptr<DiskStore>& disk = api::host().disk_store();
  json.field("waiting", api::host().background().waiting());
  json.field("folder", disk == nullptr ? std::string() : to_text(disk->folder()));
  json.end_object();
  return std::move(json).text();
}

}  // namespace

Cache& ingot::core::api::cache_of(ingot_session* session) {
  return session == nullptr ? host().cache() : session->cache;
}

extern "C" {

ingot_status* ingot_session_create(const ingot_session_options* options, ingot_session** session) {
  return api::guard([&] {
    api::require(options, "options");
    api::require(session, "session");
    const auto given = api::read_struct(options, kFirstSessionOptions, "ingot_session_options");
    *session = new ingot_session(given.cache_bytes);
  });
}

void ingot_session_free(ingot_session* session) { delete session; }

ingot_status* ingot_cache_stats(const ingot_session* session, ingot_text** json) {
  return api::guard([&] {
    api::require(json, "json");
    *json = api::make_text(describe_cache(api::cache_of(const_cast<ingot_session*>(session))));
  });
}

int32_t ingot_cache_wait(int64_t milliseconds) {
  Host* const host = api::made_host();
  if (host == nullptr) return 1;
  const int64_t patience = std::clamp<int64_t>(milliseconds, 0, kLongestWait.count());
  return host->background().wait(std::chrono::milliseconds(patience)) ? 1 : 0;
}

ingot_status* ingot_cache_clear(ingot_session* session) {
  return api::guard([&] { api::cache_of(session).memory().clear(); });
}

}  // extern "C"
