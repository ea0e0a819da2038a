// SPDX-License-Identifier: Apache-2.0
#include "support/file.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <system_error>

#include <fmt/core.h>

#include "support/error.h"
#include "support/file_errors.h"
#include "support/paths.h"

namespace ingot::core {
namespace {

bool blames_the_path(int error) {
  constexpr std::array kPathErrors = {ENOENT, EACCES, EPERM, EISDIR, ENOTDIR, ELOOP, ENAMETOOLONG, EROFS};
  return std::ranges::find(kPathErrors, error) != kPathErrors.end();
}

int open_to_read(const std::filesystem::path& path, const FileSystem& files) {
  const int file = retry_interrupted([&] { return files.open_to_read(path.c_str()); });
  if (file < 0) fail_on_file("open", path, errno);
  return file;
}

FileVersion version_of(int file, const std::filesystem::path& path, const FileSystem& files) {
  FileVersion version;
  if (files.version(file, &version) < 0) fail_on_file("read the size of", path, errno);
  return version;
}

// Closes a file that was only read: its close has no error worth reporting.
class ReadHandle {
 public:
  ReadHandle(int file, const FileSystem& files) : file_(file), files_(files) {}
  ReadHandle(const ReadHandle&) = delete;
  ReadHandle& operator=(const ReadHandle&) = delete;
  ~ReadHandle() { files_.close(file_); }

 private:
  int file_;
  const FileSystem& files_;
};

}  // namespace

void fail_on_file(std::string_view action, const std::filesystem::path& path, int error) {
  std::string message =
      fmt::format("cannot {} '{}': {}", action, to_text(path), std::generic_category().message(error));
  if (blames_the_path(error)) {
    throw UserError("INGOT-U120", std::move(message),
                    error == EISDIR ? "pass the path of a file" : "check the path and its permissions");
  }
  throw DeviceError("INGOT-D001", std::move(message));
}

std::shared_ptr<const MappedFile> MappedFile::open(const std::filesystem::path& path,
                                                   const FileSystem& files) {
  const std::shared_ptr<MappedFile> result(new MappedFile(files, path));
  result->file_ = open_to_read(path, files);
  result->opened_version_ = result->version();
  const auto size = static_cast<size_t>(result->opened_version_.size);
  if (size == 0) return result;
  const void* address = files.map(result->file_, 0, size, false);
  if (address == nullptr) fail_on_file("map", path, errno);
  result->bytes_ = {static_cast<const std::byte*>(address), size};
  return result;
}

FileVersion MappedFile::version() const { return version_of(file_, path_, files_); }

std::shared_ptr<const MappedFile> MappedFile::map_executable(size_t offset, size_t length) const {
  invariant(offset <= bytes_.size() && length <= bytes_.size() - offset,
            "an executable map is inside its file");
  const std::shared_ptr<MappedFile> result(new MappedFile(files_, path_));
  if (length == 0) return result;
  const void* address = file_ < 0 ? nullptr : files_.map(file_, offset, length, true);
  if (address != nullptr) {
    result->bytes_ = {static_cast<const std::byte*>(address), length};
  } else {
    result->copy_ = make_executable_copy(bytes_.subspan(offset, length));
    result->bytes_ = {result->copy_.get(), length};
  }
  return result;
}

MappedFile::~MappedFile() {
  if (!copy_ && !bytes_.empty()) files_.unmap(const_cast<std::byte*>(bytes_.data()), bytes_.size());
  if (file_ >= 0) files_.close(file_);
}

size_t read_file(const std::filesystem::path& path, const std::function<std::byte*(size_t)>& allocate,
                 const FileSystem& files) {
  const int file = open_to_read(path, files);
  const ReadHandle handle(file, files);
  const auto size = static_cast<size_t>(version_of(file, path, files).size);
  std::byte* const memory = allocate(size);
  size_t known = 0;
  while (known < size) {
    const int64_t count = retry_interrupted([&] { return files.read(file, memory + known, size - known); });
    if (count < 0) fail_on_file("read", path, errno);
    if (count == 0) break;  // the file was truncated meanwhile
    known += static_cast<size_t>(count);
  }
  return known;
}

std::string read_text_file(const std::filesystem::path& path, const FileSystem& files) {
  const int file = open_to_read(path, files);
  const ReadHandle handle(file, files);
  std::string text;
  std::array<char, 16384> buffer;
  // To the end of the file, not to its reported size: files in /proc report none.
  while (true) {
    const int64_t count = retry_interrupted([&] { return files.read(file, buffer.data(), buffer.size()); });
    if (count < 0) fail_on_file("read", path, errno);
    if (count == 0) return text;
    text.append(buffer.data(), static_cast<size_t>(count));
  }
}

}  // namespace ingot::core
