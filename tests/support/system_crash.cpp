// SPDX-License-Identifier: Apache-2.0
#include "tests/support/system_crash.h"

#include <algorithm>
#include <fstream>
#include <utility>

namespace ingot::core::testing {
namespace {

using Kind = DiskChange::Kind;

constexpr size_t kTornBlock = 512;
constexpr std::string_view kNoName = "no name ";

// FileSystem holds plain functions, so that the record has to be visible to them.
struct CrashRecord {
  std::vector<DiskChange> changes;
  std::map<int, std::pair<std::string, size_t>> files;  // path and position of each open file
  int unnamed = 0;
};
thread_local CrashRecord crash_record;

int recorded(int result, DiskChange change) {
  if (result >= 0) crash_record.changes.push_back(std::move(change));
  return result;
}

int recorded_open(int file, std::string path, bool is_new) {
  if (file < 0) return file;
  crash_record.files[file] = {path, 0};
  return is_new ? recorded(file, {.kind = Kind::kCreate, .path = std::move(path)}) : file;
}

void recorded_write(int file, const void* source, int64_t size, size_t offset) {
  if (size <= 0) return;
  const auto* bytes = static_cast<const std::byte*>(source);
  crash_record.changes.push_back({.kind = Kind::kWrite,
                                  .path = crash_record.files.at(file).first,
                                  .bytes = {bytes, bytes + size},
                                  .offset = offset});
}

void record_opens(FileSystem& files) {
  files.create_exclusively = [](const char* p) {
    return recorded_open(kSystemFiles.create_exclusively(p), p, true);
  };
  files.create_unnamed = [](const char* folder) {
    const std::string name = std::string(kNoName) + std::to_string(crash_record.unnamed++);
    return recorded_open(kSystemFiles.create_unnamed(folder), name, true);
  };
  files.open_to_update = [](const char* p) {
    const bool is_new = !std::filesystem::exists(p);
    return recorded_open(kSystemFiles.open_to_update(p), p, is_new);
  };
  files.open_folder = [](const char* p) { return recorded_open(kSystemFiles.open_folder(p), p, false); };
}

void record_writes(FileSystem& files) {
  files.write = [](int f, const void* from, size_t n) {
    const int64_t done = kSystemFiles.write(f, from, n);
    size_t& position = crash_record.files.at(f).second;
    recorded_write(f, from, done, position);
    position += static_cast<size_t>(std::max<int64_t>(done, 0));
    return done;
  };
  files.write_at = [](int f, const void* from, size_t n, int64_t at) {
    const int64_t done = kSystemFiles.write_at(f, from, n, at);
    recorded_write(f, from, done, static_cast<size_t>(at));
    return done;
  };
}

void record_names(FileSystem& files) {
  files.give_name = [](int file, const char* p) {
    std::string& path = crash_record.files.at(file).first;
    const int done =
        recorded(kSystemFiles.give_name(file, p), {.kind = Kind::kRename, .path = path, .target = p});
    if (done >= 0) path = p;
    return done;
  };
  files.rename = [](const char* a, const char* b) {
    return recorded(kSystemFiles.rename(a, b), {.kind = Kind::kRename, .path = a, .target = b});
  };
  files.remove = [](const char* p) {
    return recorded(kSystemFiles.remove(p), {.kind = Kind::kRemove, .path = p});
  };
  files.make_folder = [](const char* p) {
    return recorded(kSystemFiles.make_folder(p), {.kind = Kind::kFolder, .path = p});
  };
  files.set_modified = [](const char* p, uint64_t s) {
    return recorded(kSystemFiles.set_modified(p, s), {.kind = Kind::kStamp, .path = p, .stamp = s});
  };
}

bool is_metadata(const DiskChange& change) {
  return change.kind != Kind::kWrite && change.kind != Kind::kSync;
}

// What has to be synced for a change to last.
std::string synced_path(const DiskChange& change) {
  if (change.kind == Kind::kWrite) return change.path;
  return std::filesystem::path(change.target.empty() ? change.path : change.target).parent_path();
}

// Per change: whether a later one syncs it. A name without a file is nowhere on the medium.
std::vector<bool> lasting(const std::vector<DiskChange>& changes) {
  std::vector<bool> lasts(changes.size());
  std::set<std::string> synced;
  for (size_t i = changes.size(); i-- > 0;) {
    if (changes[i].kind == Kind::kSync) synced.insert(changes[i].path);
    lasts[i] = changes[i].kind == Kind::kSync || synced.contains(synced_path(changes[i]));
  }
  return lasts;
}

std::set<size_t> some_blocks(size_t bytes, std::mt19937& random) {
  std::set<size_t> lost;
  for (size_t block = 0; block * kTornBlock < bytes; ++block) {
    if (random() % 4 == 0) lost.insert(block);
  }
  return lost;
}

}  // namespace

FileSystem recording_files(Syncs syncs) {
  FileSystem files = kSystemFiles;
  record_opens(files);
  record_writes(files);
  record_names(files);
  files.sync = [](int) { return 0; };
  if (syncs == Syncs::kDoNothing) return files;
  files.sync = [](int file) {
    return recorded(kSystemFiles.sync(file),
                    {.kind = Kind::kSync, .path = crash_record.files.at(file).first});
  };
  return files;
}

std::vector<DiskChange> take_recorded_changes() { return std::exchange(crash_record, {}).changes; }

void Medium::apply(const DiskChange& change, const std::set<size_t>& lost_blocks) {
  if (change.kind == Kind::kCreate) files_.try_emplace(change.path);
  if (change.kind == Kind::kWrite) write(change, lost_blocks);
  if (change.kind == Kind::kRename) rename(change);
  if (change.kind == Kind::kRemove) files_.erase(change.path);
}

void Medium::write_to(const std::filesystem::path& from, const std::filesystem::path& to) const {
  std::filesystem::create_directories(to);
  std::filesystem::permissions(to, std::filesystem::perms::owner_all);
  for (const auto& [path, bytes] : files_) {
    if (path.starts_with(kNoName)) continue;
    const std::filesystem::path own = to / std::filesystem::relative(path, from);
    std::filesystem::create_directories(own.parent_path());
    std::ofstream(own, std::ios::binary)
        .write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
  }
}

// A block that was lost is zeros, or not there if nothing after it is.
void Medium::write(const DiskChange& change, const std::set<size_t>& lost_blocks) {
  const auto file = files_.find(change.path);
  if (file == files_.end()) return;
  for (size_t i = 0; i < change.bytes.size(); ++i) {
    if (lost_blocks.contains(i / kTornBlock)) continue;
    const size_t at = change.offset + i;
    if (file->second.size() <= at) file->second.resize(at + 1);
    file->second[at] = change.bytes[i];
  }
}

void Medium::rename(const DiskChange& change) {
  const auto file = files_.find(change.path);
  if (file == files_.end()) return;
  files_[change.target] = std::move(file->second);
  files_.erase(change.path);
}

Medium after_crash(Medium medium, std::vector<DiskChange> changes, size_t count, bool spoils,
                   std::mt19937& random) {
  changes.resize(count);
  const std::vector<bool> lasts = lasting(changes);
  for (size_t i = 1; spoils && i < changes.size(); ++i) {
    const bool may_swap = is_metadata(changes[i]) && !lasts[i - 1] && !lasts[i];
    if (may_swap && random() % 4 == 0) std::swap(changes[i - 1], changes[i]);
  }
  for (size_t i = 0; i < changes.size(); ++i) {
    const DiskChange& change = changes[i];
    const bool may_be_lost = spoils && !lasts[i];
    if (may_be_lost && random() % 4 == 0 && change.kind != Kind::kCreate) continue;
    medium.apply(change, may_be_lost ? some_blocks(change.bytes.size(), random) : std::set<size_t>());
  }
  return medium;
}

}  // namespace ingot::core::testing
