// SPDX-License-Identifier: Apache-2.0
#include "cache/bundle.h"

#include <algorithm>
#include <cstring>
#include <string_view>
#include <vector>

#include "cache/entry.h"
#include "support/error.h"

namespace ingot::core {
namespace {

constexpr std::string_view kBundleMagic = "INGOTBUN";
constexpr uint64_t kBundleVersion = 1;

[[noreturn]] void refuse_bundle(std::string_view problem) {
  throw UserError("INGOT-U024", "this is not a whole bundle of cache entries: " + std::string(problem),
                  "write it again with `ingot cache bundle`");
}

Bytes bytes_of(const uint64_t& number) { return std::as_bytes(std::span(&number, 1)); }

class BundleReader {
 public:
  explicit BundleReader(Bytes rest) : rest_(rest) {}

  bool is_at_end() const { return rest_.empty(); }
  uint64_t number() {
    uint64_t value = 0;
    std::memcpy(&value, take(sizeof(value)).data(), sizeof(value));
    return value;
  }
  Bytes take(uint64_t count) {
    if (count > rest_.size()) refuse_bundle("it is cut off");
    const Bytes part = rest_.first(count);
    rest_ = rest_.subspan(count);
    return part;
  }

 private:
  Bytes rest_;
};

SealedEntry checked_entry(Bytes sealed) {
  const auto opened = open_entry(sealed);
  if (const auto* problem = std::get_if<std::string_view>(&opened)) refuse_bundle(*problem);
  return std::get<SealedEntry>(opened);
}

}  // namespace

BundleTotals write_bundle(DiskStore& store, const Sink& sink) {
  BundleTotals totals;
  sink(as_bytes(kBundleMagic));
  sink(bytes_of(kBundleVersion));
  for (const StoredEntry& stored : store.list()) {
    const Blob file = store.read(stored.digest);
    if (file == nullptr || std::holds_alternative<std::string_view>(open_entry(*file))) continue;
    sink(bytes_of(file->size()));
    sink(*file);
    ++totals.entries;
    totals.bytes += file->size();
  }
  return totals;
}

BundleTotals add_bundle(DiskStore& store, Bytes bundle) {
  BundleReader reader(bundle);
  if (!std::ranges::equal(reader.take(kBundleMagic.size()), as_bytes(kBundleMagic)))
    refuse_bundle("it is another kind of file");
  if (reader.number() != kBundleVersion) refuse_bundle("another version of Ingot wrote it");
  std::vector<SealedEntry> entries;
  while (!reader.is_at_end()) entries.push_back(checked_entry(reader.take(reader.number())));
  BundleTotals totals;
  for (const SealedEntry& entry : entries) {
    const CacheKey key{entry.kind, std::string(entry.text), digest(as_bytes(entry.text))};
    store.put(key, entry.value);
    ++totals.entries;
    totals.bytes += entry.value.size();
  }
  return totals;
}

}  // namespace ingot::core
