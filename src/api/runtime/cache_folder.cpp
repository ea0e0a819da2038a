// SPDX-License-Identifier: Apache-2.0
// The entries of a cache on disk, for tools.
#include <fmt/core.h>

#include <algorithm>

#include "api/runtime/checks.h"
#include "api/runtime/guard.h"
#include "api/runtime/handles.h"
#include "api/runtime/host_access.h"
#include "cache/bundle.h"
#include "cache/entry.h"
#include "ingot/build.h"
#include "runtime/memory.h"
#include "support/error.h"
#include "support/json_writer.h"
#include "support/paths.h"

using namespace ingot::core;

namespace {

// The store of a folder, which can be used.
class OpenStore {
 public:
  explicit OpenStore(const char* folder, bool create = false) {
    const std::shared_ptr<DiskStore>& own = api::host().disk_store();
    if (folder == nullptr && own == nullptr)
      throw UserError("INGOT-U022", "this process has no cache on disk",
                      "give a folder, or set INGOT_ENGINE_CACHE_DIR");
    create = create || folder == nullptr;  // as a build would: a cache that has not been used is empty
    const uint64_t limit = own == nullptr ? HostOptions{}.cache_limit : own->limit();
    store_.emplace(DiskStoreOptions{.folder = folder == nullptr ? own->folder() : to_path(folder),
                                    .create = create,
                                    .limit = limit,
                                    .report = [this](const std::string& line) { problem_ = line; },
                                    .seconds = {}});
    if (store_->is_usable()) return;
    throw UserError("INGOT-U022", problem_, "give the folder of a cache, which is yours alone (mode 0700)");
  }

  DiskStore* operator->() { return &*store_; }
  DiskStore& operator*() { return *store_; }

 private:
  std::optional<DiskStore> store_;
  std::string problem_;
};

std::string list_entries(const char* folder) {
  OpenStore store(folder);
  JsonWriter json;
  json.begin_object();
  json.field("folder", to_text(store->folder()));
  json.key("entries").begin_array();
  uint64_t bytes = 0;
  for (const StoredEntry& entry : store->list()) {
    json.begin_object();
    json.field("key", entry.digest);
    json.field("bytes", entry.bytes);
    json.field("used", entry.stamp);
    json.end_object();
    bytes += entry.bytes;
  }
  json.end_array();
  json.field("bytes", bytes);
  json.field("limit", store->limit());
  json.end_object();
  return std::move(json).text();
}

// The one entry whose digest begins so.
std::string find_entry(DiskStore& store, const std::string& key) {
  std::vector<std::string> found;
  for (const StoredEntry& entry : store.list()) {
    if (entry.digest.starts_with(key)) found.push_back(entry.digest);
  }
  if (found.size() == 1) return found[0];
  throw UserError("INGOT-U023",
                  fmt::format("{} of the cache have a key that begins with '{}'",
                              found.empty() ? "no entries" : fmt::format("{} entries", found.size()), key),
                  "`ingot cache ls` lists the keys");
}

std::string describe_entry(const char* folder, const std::string& key) {
  OpenStore store(folder);
  const std::string digest = find_entry(*store.operator->(), key);
  const Blob file = store->read(digest);
  if (file == nullptr) throw UserError("INGOT-U023", fmt::format("entry {} cannot be read", digest));
  const auto opened = open_entry(*file);
  if (const auto* problem = std::get_if<std::string_view>(&opened))
    throw UserError("INGOT-U023", fmt::format("entry {} cannot be used: {}", digest, *problem),
                    "`ingot cache verify` removes damaged entries");
  const auto& entry = std::get<SealedEntry>(opened);
  JsonWriter json;
  json.begin_object();
  json.field("key", digest);
  json.field("kind", name_of(entry.kind));
  json.field("bytes", file->size());
  json.field("text", entry.text);
  json.end_object();
  return std::move(json).text();
}

// Why an entry is not what its name says; "" if it is.
std::string problem_of(const StoredEntry& stored, const Blob& file) {
  if (file == nullptr) return "it cannot be read";
  const auto opened = open_entry(*file);
  if (const auto* problem = std::get_if<std::string_view>(&opened)) return std::string(*problem);
  const bool is_own = hex(digest(as_bytes(std::get<SealedEntry>(opened).text))) == stored.digest;
  return is_own ? "" : "its name is not the digest of its text";
}

std::string verify_entries(const char* folder) {
  OpenStore store(folder);
  JsonWriter json;
  json.begin_object();
  json.key("damaged").begin_array();
  const std::vector<StoredEntry> entries = store->list();
  for (const StoredEntry& entry : entries) {
    const std::string problem = problem_of(entry, store->read(entry.digest));
    if (problem.empty()) continue;
    store->remove(entry.digest);
    json.begin_object();
    json.field("key", entry.digest);
    json.field("reason", problem);
    json.end_object();
  }
  json.end_array();
  json.field("entries", entries.size());
  json.end_object();
  return std::move(json).text();
}

ingot_text* describe_bundle(const BundleTotals& totals) {
  JsonWriter json;
  json.begin_object();
  json.field("entries", totals.entries);
  json.field("bytes", totals.bytes);
  json.end_object();
  return api::make_text(std::move(json).text());
}

}  // namespace

extern "C" {

ingot_status* ingot_cache_list(const char* folder, ingot_text** json) {
  return api::guard([&] {
    api::require(json, "json");
    *json = api::make_text(list_entries(folder));
  });
}

ingot_status* ingot_cache_describe(const char* folder, const char* key, ingot_text** json) {
  return api::guard([&] {
    api::require(key, "key");
    api::require(json, "json");
    *json = api::make_text(describe_entry(folder, key));
  });
}

ingot_status* ingot_cache_verify(const char* folder, ingot_text** json) {
  return api::guard([&] {
    api::require(json, "json");
    *json = api::make_text(verify_entries(folder));
  });
}

ingot_status* ingot_cache_collect(const char* folder, uint64_t bytes) {
  return api::guard([&] { OpenStore(folder)->collect(bytes); });
}

ingot_status* ingot_cache_bundle(const char* folder, const char* path, ingot_text** json) {
  return api::guard([&] {
    api::require(path, "path");
    api::require(json, "json");
    OpenStore store(folder);
    BundleTotals totals;
    write_file_atomically(to_path(path), [&](const Sink& sink) { totals = write_bundle(*store, sink); });
    *json = describe_bundle(totals);
  });
}

ingot_status* ingot_cache_unbundle(const char* folder, const char* path, ingot_text** json) {
  return api::guard([&] {
    api::require(path, "path");
    api::require(json, "json");
    OpenStore store(folder, true);
    const FileCopy bundle = read_copy(to_path(path));
    *json = describe_bundle(add_bundle(*store, bundle.bytes()));
  });
}

}  // extern "C"
