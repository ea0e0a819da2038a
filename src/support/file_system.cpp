// SPDX-License-Identifier: Apache-2.0
#include "support/file_system.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>

namespace ingot::core {
namespace {

// A folder opens too, and fails later in ways that depend on the file system.
int open_to_read(const char* path) {
  const int file = ::open(path, O_RDONLY | O_CLOEXEC);
  struct stat facts{};
  if (file < 0 || ::fstat(file, &facts) != 0 || !S_ISDIR(facts.st_mode)) return file;
  ::close(file);
  errno = EISDIR;
  return -1;
}

int create_exclusively(const char* path) {
  constexpr mode_t kReadableByAll = 0666;  // less the user's mask
  return ::open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, kReadableByAll);
}

int64_t read(int file, void* target, size_t size) { return ::read(file, target, size); }

int64_t write(int file, const void* source, size_t size) { return ::write(file, source, size); }

int64_t size(int file) {
  struct stat facts{};
  return ::fstat(file, &facts) == 0 ? static_cast<int64_t>(facts.st_size) : -1;
}

void* map(int file, size_t offset, size_t size, bool executable) {
  const int protection = PROT_READ | (executable ? PROT_EXEC : 0);
  void* address = ::mmap(nullptr, size, protection, MAP_PRIVATE, file, static_cast<off_t>(offset));
  return address == MAP_FAILED ? nullptr : address;
}

}  // namespace

constinit const FileSystem kSystemFiles = {
    .open_to_read = open_to_read,
    .create_exclusively = create_exclusively,
    .read = read,
    .write = write,
    .size = size,
    .close = ::close,
    .rename = ::rename,
    .remove = ::unlink,
    .map = map,
    .unmap = ::munmap,
};

}  // namespace ingot::core
