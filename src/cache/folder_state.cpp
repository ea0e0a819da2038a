// SPDX-License-Identifier: Apache-2.0
#include "cache/folder_state.h"

#include <cerrno>
#include <chrono>
#include <cstring>
#include <thread>

#include "support/hash.h"

namespace ingot::core {
namespace {

constexpr std::chrono::milliseconds kPause{1};
constexpr int kAttempts = 200;  // others hold the lock for as long as a scan of the folder takes

struct Record {
  uint64_t bytes, newest;
  Checksum checksum;
};

Checksum checksum_of(const Record& record) {
  return checksum(std::as_bytes(std::span(&record, 1)).first(offsetof(Record, checksum)));
}

}  // namespace

FolderState::FolderState(const std::filesystem::path& folder, const FileSystem& files)
    : files_(files), lock_(folder / "state", files) {
  for (int attempt = 0; lock_.is_open() && attempt < kAttempts; ++attempt) {
    if (lock_.try_lock() || errno != EWOULDBLOCK) return;
    std::this_thread::sleep_for(kPause);
  }
}

std::optional<FolderTotals> FolderState::read() const {
  Record record{};
  const int64_t count =
      lock_.is_open() ? retry_interrupted([&] { return files_.read(lock_.file(), &record, sizeof(record)); })
                      : -1;
  if (count != sizeof(record) || record.checksum != checksum_of(record)) return std::nullopt;
  return FolderTotals{record.bytes, record.newest};
}

void FolderState::write(const FolderTotals& totals) {
  Record record{totals.bytes, totals.newest, {}};
  record.checksum = checksum_of(record);
  retry_interrupted(
      [&] { return files_.write_at(lock_.file(), &record, sizeof(record), 0); });  // else: as if torn
}

}  // namespace ingot::core
