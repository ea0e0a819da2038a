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

FolderState::FolderState(const std::filesystem::path& folder, const FileSystem& files) : files_(files) {
  file_ = retry_interrupted([&] { return files_.open_to_update((folder / "state").c_str()); });
  for (int attempt = 0; file_ >= 0 && !is_locked_ && attempt < kAttempts; ++attempt) {
    is_locked_ = retry_interrupted([&] { return files_.lock(file_); }) == 0;
    if (is_locked_) continue;
    if (errno != EWOULDBLOCK) return;
    std::this_thread::sleep_for(kPause);
  }
}

FolderState::~FolderState() {
  if (file_ >= 0) files_.close(file_);
}

std::optional<FolderTotals> FolderState::read() const {
  Record record{};
  const int64_t count =
      file_ < 0 ? -1 : retry_interrupted([&] { return files_.read(file_, &record, sizeof(record)); });
  if (count != sizeof(record) || record.checksum != checksum_of(record)) return std::nullopt;
  return FolderTotals{record.bytes, record.newest};
}

void FolderState::write(const FolderTotals& totals) {
  Record record{totals.bytes, totals.newest, {}};
  record.checksum = checksum_of(record);
  retry_interrupted([&] { return files_.write_at(file_, &record, sizeof(record), 0); });  // else: as if torn
}

}  // namespace ingot::core
