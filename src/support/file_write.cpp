// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <cerrno>
#include <random>
#include <utility>

#include <fmt/core.h>

#include "support/error.h"
#include "support/file.h"
#include "support/file_errors.h"
#include "support/paths.h"
#include "support/process.h"

namespace ingot::core {
namespace {

constexpr size_t kBuffer = size_t{256} << 10;
constexpr int64_t kWindow = 4 << 20;  // bytes written back at once; two windows may be in flight
constexpr int kAttempts = 16;         // temporary names tried
constexpr int kMostLinks = 40;
constexpr size_t kLongestPath = size_t{1} << 15;  // characters

std::filesystem::path random_name(const std::filesystem::path& folder) {
  std::random_device random;
  const uint64_t number = uint64_t{random()} << 32 | random();
  return folder / fmt::format(".ingot-{}-{:016x}.tmp", process_id(), number);
}

// "." for a bare file name.
std::filesystem::path folder_of(const std::filesystem::path& path) {
  return path.has_parent_path() ? path.parent_path() : std::filesystem::path(".");
}

FileFacts describe(const std::filesystem::path& path, bool follow, const FileSystem& files) {
  FileFacts facts;
  if (files.describe(path.c_str(), follow, &facts) < 0) fail_on_file("write", path, errno);
  return facts;
}

std::filesystem::path read_link(const std::filesystem::path& path, const FileSystem& files) {
  std::array<PathChar, kLongestPath> target;
  const int64_t length = files.read_link(path.c_str(), target.data(), target.size());
  if (length < 0) fail_on_file("write", path, errno);
  return std::filesystem::path::string_type(target.data(), static_cast<size_t>(length));
}

// The path of the file, existing or not, that opening `path` for writing would create or replace.
std::filesystem::path follow_links(std::filesystem::path path, const FileSystem& files) {
  for (int i = 0; describe(path, false, files).type == FileType::kLink; ++i) {
    if (i == kMostLinks) fail_on_file("write", path, ELOOP);
    path = path.parent_path() / read_link(path, files);
  }
  return path;
}

void require_writable_type(const std::filesystem::path& path, const FileFacts& facts) {
  if (facts.type == FileType::kFolder) fail_on_file("write", path, EISDIR);
  if (facts.type != FileType::kOther) return;
  throw UserError("INGOT-U120",
                  fmt::format("cannot write '{}': it is a block device or a socket", to_text(path)),
                  "pass the path of a file");
}

}  // namespace

FileWriter::FileWriter(const std::filesystem::path& path, const FileSystem& files)
    : path_(path), files_(files) {
  if (path_.empty()) fail_on_file("write", path_, ENOENT);
  buffer_.reserve(kBuffer);
  old_ = describe(path_, true, files_);  // by the system itself, which rejects links that others planted
  require_writable_type(path_, old_);
  if (old_.type == FileType::kStream) {
    file_ = retry_interrupted([&] { return files_.open_to_write(path_.c_str()); });
    if (file_ < 0) fail_on_file("write", path_, errno);
    return;
  }
  target_ = follow_links(path_, files_);
  const FileFacts found = describe(target_, false, files_);
  if (found.device != old_.device || found.number != old_.number)
    fail_on_file("write", path_, kFileWasReplaced);
  create();
}

FileWriter::~FileWriter() {
  if (file_ >= 0) files_.close(file_);
  if (!temporary_.empty()) files_.remove(temporary_.c_str());
}

void FileWriter::create() {
  const std::filesystem::path folder = folder_of(target_);
  file_ = retry_interrupted([&] { return files_.create_unnamed(folder.c_str()); });
  for (int attempt = 0; file_ < 0; ++attempt) {
    std::filesystem::path name = random_name(folder);
    file_ = retry_interrupted([&] { return files_.create_exclusively(name.c_str()); });
    if (file_ >= 0) temporary_ = std::move(name);
    if (file_ < 0 && (errno != EEXIST || attempt == kAttempts)) fail_on_file("write", path_, errno);
  }
}

void FileWriter::append(Bytes data) {
  invariant(file_ >= 0, "a finished file takes no more bytes");
  if (buffer_.size() + data.size() > kBuffer) flush();
  if (data.size() >= kBuffer) return write(data);
  buffer_.insert(buffer_.end(), data.begin(), data.end());
}

void FileWriter::name_randomly() {
  for (int attempt = 0; temporary_.empty(); ++attempt) {
    std::filesystem::path name = random_name(folder_of(target_));
    if (retry_interrupted([&] { return files_.give_name(file_, name.c_str()); }) == 0) {
      temporary_ = std::move(name);
    } else if (errno != EEXIST || attempt == kAttempts) {
      fail_on_file("write", path_, errno);
    }
  }
}

void FileWriter::replace() {
  if (retry_interrupted([&] { return files_.rename(temporary_.c_str(), target_.c_str()); }) < 0)
    fail_on_file("replace", path_, errno);
  temporary_.clear();
  // The name is durable once the folder is synced; a folder that cannot be read cannot be synced either.
  const int folder = files_.open_folder(folder_of(target_).c_str());
  if (folder < 0) return;
  const int synced = retry_interrupted([&] { return files_.sync(folder); });
  const int error = errno;
  files_.close(folder);
  if (synced < 0) fail_on_file("sync the folder of", path_, error);
}

void FileWriter::finish() {
  invariant(file_ >= 0, "a file is finished once");
  flush();
  const bool replaces = old_.type != FileType::kStream;
  if (replaces && old_.type == FileType::kRegular && files_.take_access(file_, &old_) < 0)
    fail_on_file("write", path_, errno);
  if (retry_interrupted([&] { return files_.sync(file_); }) < 0) fail_on_file("write", path_, errno);
  if (replaces) name_randomly();
  const int closed = files_.close(std::exchange(file_, -1));
  if (closed < 0 && errno != EINTR)
    fail_on_file("write", path_, errno);  // network file systems report errors late
  if (replaces) replace();
}

void FileWriter::flush() {
  write(buffer_);
  buffer_.clear();
}

void FileWriter::write(Bytes data) {
  while (!data.empty()) {
    const int64_t count = retry_interrupted([&] { return files_.write(file_, data.data(), data.size()); });
    if (count <= 0) fail_on_file("write", path_, count < 0 ? errno : EIO);
    data = data.subspan(static_cast<size_t>(count));
    written_ += count;
  }
  sync_behind();
}

// Without this, the last call would have to wait for everything that was written, and could not be
// interrupted meanwhile.
void FileWriter::sync_behind() {
  if (old_.type == FileType::kStream) return;
  for (; written_ - begun_ >= kWindow; begun_ += kWindow) {
    files_.sync_part(file_, begun_, kWindow, false);
    if (begun_ >= kWindow) files_.sync_part(file_, begun_ - kWindow, kWindow, true);
  }
}

void write_file_atomically(const std::filesystem::path& path, const std::function<void(const Sink&)>& fill,
                           const FileSystem& files) {
  FileWriter writer(path, files);
  fill([&](Bytes data) { writer.append(data); });
  writer.finish();
}

}  // namespace ingot::core
