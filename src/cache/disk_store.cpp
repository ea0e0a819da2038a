// SPDX-License-Identifier: Apache-2.0
#include "cache/disk_store.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <random>

#include <fmt/core.h>

#include "cache/entry.h"
#include "support/error.h"
#include "support/paths.h"
#include "support/process.h"

namespace ingot::core {
namespace {

constexpr uint64_t kNanoseconds = 1'000'000'000;
constexpr uint64_t kStampSeconds = 60;  // a stamp that is younger is not renewed
constexpr uint64_t kAbandoned = 3600;   // seconds after which a dead writer's file goes
constexpr size_t kManyEntries = 1000;   // from here on, room is made for several entries at once
constexpr size_t kFolderDigits = 2;     // of a digest in hexadecimal
constexpr size_t kDigits = 2 * sizeof(Digest);
constexpr std::string_view kTemporary = "tmp-";  // PID-RANDOM

uint64_t system_seconds() {
  const auto since = std::chrono::system_clock::now().time_since_epoch();
  return static_cast<uint64_t>(std::chrono::duration_cast<std::chrono::seconds>(since).count());
}

bool is_hexadecimal(std::string_view name, size_t digits) {
  return name.size() == digits && name.find_first_not_of("0123456789abcdef") == name.npos;
}

std::vector<std::string> names_in(const std::filesystem::path& folder, const FileSystem& files) {
  std::vector<std::string> names;
  files.list(folder.c_str(), &names, [](void* all, const PathChar* name) {
    static_cast<std::vector<std::string>*>(all)->push_back(to_text(name));
  });
  return names;
}

std::filesystem::path temporary_name(const std::filesystem::path& folder) {
  std::random_device random;
  const uint64_t number = uint64_t{random()} << 32 | random();
  return folder / fmt::format("{}{}-{:016x}", kTemporary, process_id(), number);
}

}  // namespace

DiskStore::DiskStore(DiskStoreOptions options, const FileSystem& files)
    : options_(std::move(options)), files_(files) {
  if (!options_.seconds) options_.seconds = system_seconds;
}

Blob DiskStore::find(const CacheKey& key) {
  if (!is_usable()) return nullptr;
  const std::filesystem::path path = path_of(hex(key.digest));
  FileVersion version;
  const Blob file = read_file(path, version);
  if (file == nullptr) return nullptr;
  const std::optional<Bytes> value = open(key, *file, path, version);
  return value ? std::make_shared<const std::vector<std::byte>>(value->begin(), value->end()) : nullptr;
}

DiskStore::Mapped DiskStore::map(const CacheKey& key) {
  if (!is_usable()) return {};
  const std::filesystem::path path = path_of(hex(key.digest));
  FileFacts facts;
  if (files_.describe(path.c_str(), false, &facts) < 0 || facts.type != FileType::kRegular) return {};
  try {
    auto file = MappedFile::open(path, files_);
    const std::optional<Bytes> value = open(key, file->bytes(), path, file->opened_version());
    if (value) return {std::move(file), *value};
  } catch (const Error& error) {
    report("map", path, error.details().message);
  }
  return {};
}

std::optional<Bytes> DiskStore::open(const CacheKey& key, Bytes file, const std::filesystem::path& path,
                                     FileVersion version) {
  const auto opened = open_entry_of(key, file);
  if (const auto* problem = std::get_if<std::string_view>(&opened)) {
    report("use", path, *problem);
    if (!options_.read_only) files_.remove(path.c_str());
    return std::nullopt;
  }
  if (options_.read_only) return std::get<Bytes>(opened);
  const uint64_t stamp = version.modified / kNanoseconds;
  if (stamp + kStampSeconds <= std::max(options_.seconds(), newest_.load())) touch(path);
  return std::get<Bytes>(opened);
}

void DiskStore::put(const CacheKey& key, std::span<const Bytes> parts) {
  if (options_.read_only || !is_usable()) return;
  const std::vector<std::byte> file = seal_entry(key, parts);
  const std::filesystem::path path = path_of(hex(key.digest));
  if (file.size() > options_.limit) return report("keep", path, "it is larger than the whole cache may be");
  if (files_.make_folder(path.parent_path().c_str()) < 0 && errno != EEXIST)
    return report_errno("create", path.parent_path());
  const std::filesystem::path temporary = temporary_name(path.parent_path());
  if (write_file(temporary, file)) {
    publish(temporary, path, file.size());
  } else {
    files_.remove(temporary.c_str());
  }
}

std::vector<StoredEntry> DiskStore::list() {
  std::vector<StoredEntry> entries;
  if (!is_usable()) return entries;
  for (const std::string& folder : names_in(options_.folder, files_)) {
    if (!is_hexadecimal(folder, kFolderDigits)) continue;
    for (const std::string& name : names_in(options_.folder / folder, files_)) {
      const std::filesystem::path path = options_.folder / folder / name;
      if (name.starts_with(kTemporary) && !options_.read_only) remove_if_abandoned(path);
      FileFacts facts;
      if (!is_hexadecimal(name, kDigits - kFolderDigits) || files_.describe(path.c_str(), false, &facts) < 0)
        continue;
      if (facts.type == FileType::kRegular)
        entries.push_back({folder + name, static_cast<uint64_t>(facts.version.size),
                           facts.version.modified / kNanoseconds});
    }
  }
  std::ranges::sort(entries, {}, [](const StoredEntry& e) { return std::tuple(e.stamp, e.digest); });
  return entries;
}

Blob DiskStore::read(const std::string& digest) {
  FileVersion version;
  return is_usable() ? read_file(path_of(digest), version) : nullptr;
}

bool DiskStore::remove(const std::string& digest) {
  return !options_.read_only && is_usable() && files_.remove(path_of(digest).c_str()) == 0;
}

void DiskStore::collect(uint64_t limit) {
  if (options_.read_only || !is_usable()) return;
  FolderState state(options_.folder, files_);
  const FolderTotals totals = make_room(limit);
  if (state.is_locked()) state.write(totals);
}

bool DiskStore::is_usable() {
  if (usable_ == Usable::kUnknown) {
    const std::string why = why_unusable();
    // Known from the start, since the clock may have gone back before this process began.
    if (why.empty() && !options_.read_only)
      newest_ = FolderState(options_.folder, files_).read().value_or(FolderTotals{}).newest;
    Usable unknown = Usable::kUnknown;
    const bool is_first = usable_.compare_exchange_strong(unknown, why.empty() ? Usable::kYes : Usable::kNo);
    if (is_first && !why.empty()) report("use", options_.folder, why);
  }
  return usable_ == Usable::kYes;
}

std::string DiskStore::why_unusable() {
  int error = ENOENT;
  if (options_.create && !options_.read_only) {
    std::error_code ignored;
    std::filesystem::create_directories(options_.folder.parent_path(), ignored);
    if (files_.make_folder(options_.folder.c_str()) < 0) error = errno;
  }
  FileFacts facts;
  if (files_.describe(options_.folder.c_str(), true, &facts) < 0) return std::strerror(errno);
  if (facts.type == FileType::kNone) return std::strerror(error);
  if (facts.type != FileType::kFolder) return "it is not a folder";
  if (facts.owner != current_user()) return "it belongs to another user, whose code would run";
  constexpr uint32_t kOthers = 077;
  if ((facts.permissions & kOthers) != 0) return "others may enter it: chmod 700, or give another folder";
  return "";
}

std::filesystem::path DiskStore::path_of(const std::string& digest) const {
  return options_.folder / digest.substr(0, kFolderDigits) / digest.substr(kFolderDigits);
}

Blob DiskStore::read_file(const std::filesystem::path& path, FileVersion& version) {
  const int file = retry_interrupted([&] { return files_.open_to_read(path.c_str()); });
  if (file < 0) {
    if (errno != ENOENT && errno != ENOTDIR) report_errno("open", path);
    return nullptr;
  }
  auto bytes = std::make_shared<std::vector<std::byte>>();
  const bool has_size = files_.version(file, &version) == 0;
  bool is_whole = has_size && static_cast<uint64_t>(version.size) <= options_.limit;
  if (is_whole) bytes->resize(static_cast<size_t>(version.size));
  for (size_t done = 0; is_whole && done < bytes->size();) {
    const int64_t count =
        retry_interrupted([&] { return files_.read(file, bytes->data() + done, bytes->size() - done); });
    is_whole = count > 0;
    if (is_whole) done += static_cast<size_t>(count);
  }
  if (!is_whole) report_errno("read", path);
  files_.close(file);
  return is_whole ? bytes : nullptr;
}

bool DiskStore::write_file(const std::filesystem::path& path, Bytes bytes) {
  const int file = retry_interrupted([&] { return files_.create_exclusively(path.c_str()); });
  if (file < 0) {
    report_errno("create", path);
    return false;
  }
  bool is_whole = true;
  while (is_whole && !bytes.empty()) {
    const int64_t count = retry_interrupted([&] { return files_.write(file, bytes.data(), bytes.size()); });
    is_whole = count > 0;
    if (is_whole) bytes = bytes.subspan(static_cast<size_t>(count));
  }
  if (!is_whole) report_errno("write", path);
  if (files_.close(file) < 0 && errno != EINTR && is_whole) {  // network file systems answer late
    report_errno("write", path);
    is_whole = false;
  }
  return is_whole;
}

// The totals grow before the name is given, and shrink by what it replaces afterwards: a writer that is
// killed in between leaves them too high.
void DiskStore::publish(const std::filesystem::path& temporary, const std::filesystem::path& path,
                        uint64_t size) {
  FolderState state(options_.folder, files_);
  FileFacts old;
  files_.describe(path.c_str(), false, &old);
  const auto replaced = static_cast<uint64_t>(old.version.size);
  FolderTotals totals;
  if (state.is_locked()) {
    totals = totals_of(state);
    if (totals.bytes + size > options_.limit + replaced) totals = make_room(options_.limit - size + replaced);
    totals.bytes += size;
    totals.newest = next_stamp(totals);
    state.write(totals);
    files_.set_modified(temporary.c_str(), totals.newest);
  }
  if (retry_interrupted([&] { return files_.rename(temporary.c_str(), path.c_str()); }) < 0) {
    report_errno("rename", temporary);
    files_.remove(temporary.c_str());
    return;
  }
  if (!state.is_locked() || replaced == 0) return;
  totals.bytes -= std::min(totals.bytes, replaced);
  state.write(totals);
}

FolderTotals DiskStore::totals_of(const FolderState& state) {
  if (const auto totals = state.read()) return *totals;
  return make_room(UINT64_MAX);  // only counts
}

// Counts the entries, and removes the least recently used ones until `limit` bytes are left at most.
FolderTotals DiskStore::make_room(uint64_t limit) {
  const std::vector<StoredEntry> entries = list();
  FolderTotals totals{0, newest_};
  for (const StoredEntry& entry : entries) {
    totals.bytes += entry.bytes;
    totals.newest = std::max(totals.newest, entry.stamp);
  }
  if (totals.bytes <= limit) return totals;
  if (entries.size() > kManyEntries) limit -= limit / 20;
  for (const StoredEntry& entry : entries) {
    if (totals.bytes <= limit) break;
    if (files_.remove(path_of(entry.digest).c_str()) == 0 || errno == ENOENT) totals.bytes -= entry.bytes;
  }
  return totals;
}

uint64_t DiskStore::next_stamp(const FolderTotals& totals) {
  const uint64_t newest = std::max(totals.newest, newest_.load()), now = options_.seconds();
  newest_ = now >= newest ? now : newest + 1;
  return newest_;
}

void DiskStore::touch(const std::filesystem::path& path) {
  FolderState state(options_.folder, files_);
  FolderTotals totals = state.is_locked() ? state.read().value_or(FolderTotals{}) : FolderTotals{};
  const bool is_known = totals.bytes > 0;
  totals.newest = next_stamp(totals);
  if (is_known) state.write(totals);
  files_.set_modified(path.c_str(), totals.newest);
}

void DiskStore::remove_if_abandoned(const std::filesystem::path& path) {
  const std::string name = to_text(path.filename());
  const int writer = std::atoi(name.c_str() + kTemporary.size());
  FileFacts facts;
  if (writer <= 0 || !is_process_gone(writer)) return;
  if (files_.describe(path.c_str(), false, &facts) < 0 || facts.type != FileType::kRegular) return;
  const uint64_t modified = facts.version.modified / kNanoseconds, now = options_.seconds();
  if (std::max(modified, now) - std::min(modified, now) > kAbandoned) files_.remove(path.c_str());
}

void DiskStore::report(std::string_view what, const std::filesystem::path& path, std::string_view why) {
  if (options_.report) options_.report(fmt::format("cache: cannot {} '{}': {}", what, to_text(path), why));
}

void DiskStore::report_errno(std::string_view what, const std::filesystem::path& path) {
  report(what, path, std::strerror(errno));
}

}  // namespace ingot::core
