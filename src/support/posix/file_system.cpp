// SPDX-License-Identifier: Apache-2.0
#include "support/file_system.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <string_view>

namespace ingot::core {
namespace {

// Opening a folder succeeds too, and fails later in ways that depend on the file system.
int open_to_read(const char* path) {
  const int file = ::open(path, O_RDONLY | O_CLOEXEC);
  struct stat facts{};
  if (file < 0 || ::fstat(file, &facts) != 0 || !S_ISDIR(facts.st_mode)) return file;
  ::close(file);
  errno = EISDIR;
  return -1;
}

int open_to_write(const char* path) { return ::open(path, O_WRONLY | O_NOCTTY | O_CLOEXEC); }

int open_folder(const char* path) { return ::open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC); }

constexpr mode_t kReadableByAll = 0666;  // before the user's umask

int create_exclusively(const char* path) {
  return ::open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, kReadableByAll);
}

int create_limited(const char* path, uint32_t permissions) {
  return ::open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, static_cast<mode_t>(permissions));
}

struct DescriptorPath {
  explicit DescriptorPath(int file) { std::snprintf(text, sizeof(text), "/proc/self/fd/%d", file); }
  char text[32];
};

int create_unnamed(const char* folder) {
  const int file = ::open(folder, O_WRONLY | O_TMPFILE | O_CLOEXEC, kReadableByAll);
  if (file < 0 || ::access(DescriptorPath(file).text, F_OK) == 0) return file;
  ::close(file);  // without /proc it could not be given a name
  errno = EOPNOTSUPP;
  return -1;
}

int give_name(int file, const char* path) {
  return ::linkat(AT_FDCWD, DescriptorPath(file).text, AT_FDCWD, path, AT_SYMLINK_FOLLOW);
}

int64_t read(int file, void* target, size_t size) { return ::read(file, target, size); }

int64_t write(int file, const void* source, size_t size) { return ::write(file, source, size); }

FileVersion version_of(const struct stat& facts) {
  constexpr uint64_t kNanoseconds = 1'000'000'000;
  // Unsigned: times of other centuries wrap, but still differ.
  const uint64_t modified = static_cast<uint64_t>(facts.st_mtim.tv_sec) * kNanoseconds +
                            static_cast<uint64_t>(facts.st_mtim.tv_nsec);
  return {facts.st_size, modified};
}

int version(int file, FileVersion* version) {
  struct stat facts{};
  if (::fstat(file, &facts) != 0) return -1;
  *version = version_of(facts);
  return 0;
}

FileType type_of(mode_t mode) {
  if (S_ISREG(mode)) return FileType::kRegular;
  if (S_ISDIR(mode)) return FileType::kFolder;
  if (S_ISLNK(mode)) return FileType::kLink;
  return S_ISFIFO(mode) || S_ISCHR(mode) ? FileType::kStream : FileType::kOther;
}

int describe(const char* path, bool follow, FileFacts* facts) {
  constexpr mode_t kPermissions = 0777;
  struct stat found{};
  *facts = {};
  if ((follow ? ::stat(path, &found) : ::lstat(path, &found)) != 0) return errno == ENOENT ? 0 : -1;
  *facts = {type_of(found.st_mode), found.st_mode & kPermissions,
            found.st_uid,           found.st_gid,
            found.st_dev,           found.st_ino,
            version_of(found)};
  return 0;
}

int64_t read_link(const char* path, char* target, size_t size) { return ::readlink(path, target, size); }

int take_access(int file, const FileFacts* from) {
  struct stat own{};
  if (::fstat(file, &own) != 0) return -1;
  const bool is_other = own.st_uid != from->owner || own.st_gid != from->group;
  if (is_other && ::fchown(file, from->owner, from->group) != 0 && errno != EPERM) return -1;
  return ::fchmod(file, from->permissions);
}

int sync(int file) {
  const int result = ::fsync(file);
  return result < 0 && (errno == EINVAL || errno == ENOTSUP || errno == EROFS) ? 0 : result;
}

void sync_part(int file, int64_t offset, int64_t size, bool wait) {
  const unsigned flags =
      SYNC_FILE_RANGE_WRITE | (wait ? SYNC_FILE_RANGE_WAIT_BEFORE | SYNC_FILE_RANGE_WAIT_AFTER : 0);
  ::sync_file_range(file, offset, size, flags);  // errors are reported by `sync`
}

void* map(int file, size_t offset, size_t size, bool executable) {
  const int protection = PROT_READ | (executable ? PROT_EXEC : 0);
  void* address = ::mmap(nullptr, size, protection, MAP_PRIVATE, file, static_cast<off_t>(offset));
  return address == MAP_FAILED ? nullptr : address;
}

int make_folder(const char* path) { return ::mkdir(path, S_IRWXU); }

int open_to_update(const char* path) {
  return ::open(path, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, S_IRUSR | S_IWUSR);
}

int64_t write_at(int file, const void* source, size_t size, int64_t offset) {
  return ::pwrite(file, source, size, offset);
}

int lock(int file) { return ::flock(file, LOCK_EX | LOCK_NB); }

int unlock(int file) { return ::flock(file, LOCK_UN); }

int set_modified(const char* path, uint64_t seconds) {
  const timespec modified{.tv_sec = static_cast<time_t>(seconds), .tv_nsec = 0};
  const timespec times[] = {{.tv_sec = 0, .tv_nsec = UTIME_OMIT}, modified};
  return ::utimensat(AT_FDCWD, path, times, AT_SYMLINK_NOFOLLOW);
}

int list(const char* folder, void* user, void (*each)(void* user, const char* name)) {
  DIR* const entries = ::opendir(folder);
  if (entries == nullptr) return -1;
  while (const dirent* entry = ::readdir(entries)) {
    const std::string_view name = entry->d_name;
    if (name != "." && name != "..") each(user, entry->d_name);
  }
  return ::closedir(entries);
}

}  // namespace

constinit const FileSystem kSystemFiles = {
    .open_to_read = open_to_read,
    .open_to_write = open_to_write,
    .open_folder = open_folder,
    .create_exclusively = create_exclusively,
    .create_limited = create_limited,
    .create_unnamed = create_unnamed,
    .give_name = give_name,
    .read = read,
    .write = write,
    .version = version,
    .describe = describe,
    .read_link = read_link,
    .take_access = take_access,
    .sync = sync,
    .sync_part = sync_part,
    .close = ::close,
    .rename = ::rename,
    .remove = ::unlink,
    .map = map,
    .unmap = ::munmap,
    .make_folder = make_folder,
    .open_to_update = open_to_update,
    .write_at = write_at,
    .lock = lock,
    .unlock = unlock,
    .set_modified = set_modified,
    .list = list,
};

}  // namespace ingot::core
