// SPDX-License-Identifier: Apache-2.0
#include <unistd.h>

#include <cerrno>
#include <random>
#include <utility>
#include <vector>

#include <fmt/core.h>

#include "support/file.h"
#include "support/file_errors.h"

namespace ingot::core {
namespace {

constexpr size_t kBuffer = size_t{256} << 10;
constexpr int kAttempts = 16;  // names that another writer took

std::filesystem::path temporary_path(const std::filesystem::path& path) {
  std::random_device random;
  const uint64_t number = uint64_t{random()} << 32 | random();
  return path.parent_path() / fmt::format(".ingot-{}-{:016x}.tmp", ::getpid(), number);
}

// The temporary file: gone when destroyed, unless it was committed.
class TemporaryFile {
 public:
  TemporaryFile(const std::filesystem::path& target, const FileSystem& files)
      : target_(target), files_(files) {
    for (int attempt = 0; file_ < 0; ++attempt) {
      path_ = temporary_path(target);
      file_ = retry_interrupted([&] { return files_.create_exclusively(path_.c_str()); });
      if (file_ < 0 && (errno != EEXIST || attempt == kAttempts)) fail_on_file("write", target_, errno);
    }
    buffer_.reserve(kBuffer);
  }
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;

  ~TemporaryFile() {
    if (file_ >= 0) files_.close(file_);
    if (!committed_) files_.remove(path_.c_str());
  }

  void append(Bytes data) {
    if (buffer_.size() + data.size() > kBuffer) flush();
    if (data.size() >= kBuffer) return write(data);
    buffer_.insert(buffer_.end(), data.begin(), data.end());
  }

  void commit() {
    flush();
    const int closed = files_.close(std::exchange(file_, -1));
    if (closed < 0 && errno != EINTR)
      fail_on_file("write", target_, errno);  // network file systems answer late
    if (retry_interrupted([&] { return files_.rename(path_.c_str(), target_.c_str()); }) < 0) {
      fail_on_file("replace", target_, errno);
    }
    committed_ = true;
  }

 private:
  void flush() {
    write(buffer_);
    buffer_.clear();
  }

  void write(Bytes data) {
    while (!data.empty()) {
      const int64_t count = retry_interrupted([&] { return files_.write(file_, data.data(), data.size()); });
      if (count <= 0) fail_on_file("write", target_, count < 0 ? errno : EIO);
      data = data.subspan(static_cast<size_t>(count));
    }
  }

  const std::filesystem::path& target_;
  const FileSystem& files_;
  std::filesystem::path path_;
  int file_ = -1;
  bool committed_ = false;
  std::vector<std::byte> buffer_;
};

}  // namespace

void write_file_atomically(const std::filesystem::path& path, const std::function<void(const Sink&)>& fill,
                           const FileSystem& files) {
  TemporaryFile temporary(path, files);
  fill([&](Bytes data) { temporary.append(data); });
  temporary.commit();
}

}  // namespace ingot::core
