// SPDX-License-Identifier: Apache-2.0
#include "support/file_system.h"

#include <fcntl.h>
#include <io.h>
#include <windows.h>

#include <algorithm>
#include <string>

#include "support/windows/access.h"
#include "support/windows/full_path.h"
#include "support/windows/rename.h"
#include "support/windows/text.h"

namespace ingot::core {
namespace {

// Others may read, write, rename and remove what we have open, as everywhere else.
constexpr DWORD kShare = FILE_SHARE_READ | FILE_SHARE_WRITE | FILE_SHARE_DELETE;

HANDLE handle_of(int file) { return reinterpret_cast<HANDLE>(::_get_osfhandle(file)); }

struct Opening {
  DWORD access;
  DWORD disposition;
  DWORD flags = FILE_ATTRIBUTE_NORMAL;
  SECURITY_ATTRIBUTES* security = nullptr;
};

HANDLE open_handle(const wchar_t* path, const Opening& how) {
  return ::CreateFileW(full_path(path).c_str(), how.access, kShare, how.security, how.disposition, how.flags,
                       nullptr);
}

int descriptor_of(HANDLE handle, int flags) {
  const int file = ::_open_osfhandle(reinterpret_cast<intptr_t>(handle), flags | _O_BINARY | _O_NOINHERIT);
  if (file < 0) ::CloseHandle(handle);
  return file;
}

int open_file(const wchar_t* path, const Opening& how, int flags = 0) {
  const HANDLE handle = open_handle(path, how);
  return handle == INVALID_HANDLE_VALUE ? fail_with_last_error() : descriptor_of(handle, flags);
}

bool is_folder(const wchar_t* path) {
  const DWORD attributes = ::GetFileAttributesW(full_path(path).c_str());
  return attributes != INVALID_FILE_ATTRIBUTES && (attributes & FILE_ATTRIBUTE_DIRECTORY) != 0;
}

int open_to_read(const wchar_t* path) {
  Opening how{GENERIC_READ | GENERIC_EXECUTE, OPEN_EXISTING};  // kernel binaries are mapped as code
  HANDLE handle = open_handle(path, how);
  how.access = GENERIC_READ;
  if (handle == INVALID_HANDLE_VALUE && ::GetLastError() == ERROR_ACCESS_DENIED)
    handle = open_handle(path, how);
  if (handle != INVALID_HANDLE_VALUE) return descriptor_of(handle, _O_RDONLY);
  fail_with_last_error();
  if (errno == EACCES && is_folder(path)) errno = EISDIR;
  return -1;
}

int open_to_write(const wchar_t* path) { return open_file(path, {GENERIC_WRITE, OPEN_EXISTING}); }

// Folders need no sync here: renames are written through.
int open_folder(const wchar_t*) {
  errno = EOPNOTSUPP;
  return -1;
}

int create_exclusively(const wchar_t* path) { return open_file(path, {GENERIC_WRITE, CREATE_NEW}); }

int create_privately(const wchar_t* path, const Opening& how) {
  PrivateAccess own;
  if (own.get() == nullptr) return -1;
  Opening limited = how;
  limited.security = own.get();
  return open_file(path, limited);
}

int create_limited(const wchar_t* path, uint32_t permissions) {
  constexpr uint32_t kOthers = 077;
  return (permissions & kOthers) != 0 ? create_exclusively(path)
                                      : create_privately(path, {GENERIC_WRITE, CREATE_NEW});
}

int create_unnamed(const wchar_t*) {
  errno = EOPNOTSUPP;
  return -1;
}

int give_name(int, const wchar_t*) {
  errno = EOPNOTSUPP;
  return -1;
}

unsigned limited(size_t size) { return static_cast<unsigned>(std::min<size_t>(size, size_t{1} << 30)); }

int64_t read(int file, void* target, size_t size) { return ::_read(file, target, limited(size)); }

int64_t write(int file, const void* source, size_t size) { return ::_write(file, source, limited(size)); }

// From units of 100 ns since 1601 to nanoseconds since 1970, modulo 2^64.
uint64_t nanoseconds_of(const FILETIME& time) {
  constexpr uint64_t kUnitsUntil1970 = 116'444'736'000'000'000;
  const uint64_t units = uint64_t{time.dwHighDateTime} << 32 | time.dwLowDateTime;
  return (units - kUnitsUntil1970) * 100;
}

uint64_t joined(DWORD high, DWORD low) { return uint64_t{high} << 32 | low; }

FileVersion version_of(const BY_HANDLE_FILE_INFORMATION& facts) {
  return {static_cast<int64_t>(joined(facts.nFileSizeHigh, facts.nFileSizeLow)),
          nanoseconds_of(facts.ftLastWriteTime)};
}

int version(int file, FileVersion* version) {
  BY_HANDLE_FILE_INFORMATION facts{};
  if (::GetFileInformationByHandle(handle_of(file), &facts) == 0) return fail_with_last_error();
  *version = version_of(facts);
  return 0;
}

bool is_link(HANDLE file) {
  FILE_ATTRIBUTE_TAG_INFO info{};
  return ::GetFileInformationByHandleEx(file, FileAttributeTagInfo, &info, sizeof(info)) != 0 &&
         (info.FileAttributes & FILE_ATTRIBUTE_REPARSE_POINT) != 0 &&
         (info.ReparseTag == IO_REPARSE_TAG_SYMLINK || info.ReparseTag == IO_REPARSE_TAG_MOUNT_POINT);
}

FileFacts facts_of(HANDLE file, bool follow) {
  FileFacts facts;
  facts.type = FileType::kStream;
  BY_HANDLE_FILE_INFORMATION info{};
  if (::GetFileType(file) != FILE_TYPE_DISK || ::GetFileInformationByHandle(file, &info) == 0) return facts;
  const bool folder = (info.dwFileAttributes & FILE_ATTRIBUTE_DIRECTORY) != 0;
  facts.type = folder ? FileType::kFolder : FileType::kRegular;
  if (!follow && is_link(file)) facts.type = FileType::kLink;
  const FileAccess access = access_of(file);
  facts.permissions = access.permissions;
  facts.owner = access.owner;
  facts.device = info.dwVolumeSerialNumber;
  facts.number = joined(info.nFileIndexHigh, info.nFileIndexLow);
  facts.version = version_of(info);
  return facts;
}

int describe(const wchar_t* path, bool follow, FileFacts* facts) {
  *facts = {};
  const DWORD flags = FILE_FLAG_BACKUP_SEMANTICS | (follow ? 0 : FILE_FLAG_OPEN_REPARSE_POINT);
  const HANDLE file = open_handle(path, {FILE_READ_ATTRIBUTES | READ_CONTROL, OPEN_EXISTING, flags});
  if (file == INVALID_HANDLE_VALUE) return fail_with_last_error() < 0 && errno == ENOENT ? 0 : -1;
  *facts = facts_of(file, follow);
  ::CloseHandle(file);
  return 0;
}

// The end of all links, which must exist.
int64_t read_link(const wchar_t* path, wchar_t* target, size_t size) {
  const HANDLE file = open_handle(path, {FILE_READ_ATTRIBUTES, OPEN_EXISTING, FILE_FLAG_BACKUP_SEMANTICS});
  if (file == INVALID_HANDLE_VALUE) return fail_with_last_error();
  const DWORD length = ::GetFinalPathNameByHandleW(file, target, static_cast<DWORD>(size), 0);
  const bool is_whole = length > 0 && length < size;
  if (!is_whole) fail_with_last_error();
  ::CloseHandle(file);
  return is_whole ? int64_t{length} : -1;
}

// A new file has the access list of its folder.
int take_access(int, const FileFacts*) { return 0; }

int sync(int file) {
  const HANDLE handle = handle_of(file);
  if (::GetFileType(handle) != FILE_TYPE_DISK) return 0;
  return ::FlushFileBuffers(handle) != 0 ? 0 : fail_with_last_error();
}

void sync_part(int, int64_t, int64_t, bool) {}

int rename(const wchar_t* from, const wchar_t* to) {
  return rename_replacing(full_path(from).c_str(), full_path(to).c_str());
}

int remove(const wchar_t* path) {
  return ::DeleteFileW(full_path(path).c_str()) != 0 ? 0 : fail_with_last_error();
}

void* map(int file, size_t offset, size_t size, bool executable) {
  const DWORD protection = executable ? PAGE_EXECUTE_READ : PAGE_READONLY;
  const HANDLE mapping = ::CreateFileMappingW(handle_of(file), nullptr, protection, 0, 0, nullptr);
  const uint64_t begin = offset;
  void* const address =
      mapping == nullptr ? nullptr
                         : ::MapViewOfFile(mapping, FILE_MAP_READ | (executable ? FILE_MAP_EXECUTE : 0),
                                           static_cast<DWORD>(begin >> 32), static_cast<DWORD>(begin), size);
  if (address == nullptr) fail_with_last_error();
  if (mapping != nullptr) ::CloseHandle(mapping);
  return address;
}

int unmap(void* address, size_t) { return ::UnmapViewOfFile(address) != 0 ? 0 : fail_with_last_error(); }

int make_folder(const wchar_t* path) {
  PrivateAccess own;
  if (own.get() == nullptr) return -1;
  return ::CreateDirectoryW(full_path(path).c_str(), own.get()) != 0 ? 0 : fail_with_last_error();
}

int open_to_update(const wchar_t* path) {
  return create_privately(path, {GENERIC_READ | GENERIC_WRITE, OPEN_ALWAYS, FILE_FLAG_OPEN_REPARSE_POINT});
}

OVERLAPPED at(uint64_t offset) {
  OVERLAPPED position{};
  position.Offset = static_cast<DWORD>(offset);
  position.OffsetHigh = static_cast<DWORD>(offset >> 32);
  return position;
}

int64_t write_at(int file, const void* source, size_t size, int64_t offset) {
  const HANDLE handle = handle_of(file);
  LARGE_INTEGER before{};
  ::SetFilePointerEx(handle, {}, &before, FILE_CURRENT);  // which the write moves
  OVERLAPPED position = at(static_cast<uint64_t>(offset));
  DWORD count = 0;
  const bool done = ::WriteFile(handle, source, limited(size), &count, &position) != 0;
  if (!done) fail_with_last_error();
  ::SetFilePointerEx(handle, before, nullptr, FILE_BEGIN);
  return done ? int64_t{count} : -1;
}

// Locks keep others from reading here, so that this one is of a byte that no file has.
constexpr uint64_t kLockedByte = uint64_t{1} << 62;

int lock(int file) {
  OVERLAPPED position = at(kLockedByte);
  constexpr DWORD kFlags = LOCKFILE_EXCLUSIVE_LOCK | LOCKFILE_FAIL_IMMEDIATELY;
  return ::LockFileEx(handle_of(file), kFlags, 0, 1, 0, &position) != 0 ? 0 : fail_with_last_error();
}

int unlock(int file) {
  OVERLAPPED position = at(kLockedByte);
  return ::UnlockFileEx(handle_of(file), 0, 1, 0, &position) != 0 ? 0 : fail_with_last_error();
}

int set_modified(const wchar_t* path, uint64_t seconds) {
  constexpr uint64_t kUnitsPerSecond = 10'000'000, kSecondsUntil1970 = 11'644'473'600;
  const uint64_t units = (seconds + kSecondsUntil1970) * kUnitsPerSecond;
  const FILETIME modified{static_cast<DWORD>(units), static_cast<DWORD>(units >> 32)};
  const HANDLE file = open_handle(path, {FILE_WRITE_ATTRIBUTES, OPEN_EXISTING, FILE_FLAG_OPEN_REPARSE_POINT});
  if (file == INVALID_HANDLE_VALUE) return fail_with_last_error();
  const bool done = ::SetFileTime(file, nullptr, nullptr, &modified) != 0;
  if (!done) fail_with_last_error();
  ::CloseHandle(file);
  return done ? 0 : -1;
}

int list(const wchar_t* folder, void* user, void (*each)(void* user, const wchar_t* name)) {
  WIN32_FIND_DATAW found;
  const HANDLE search = ::FindFirstFileW((full_path(folder) + L"\\*").c_str(), &found);
  if (search == INVALID_HANDLE_VALUE) return fail_with_last_error();
  do {
    const std::wstring_view name = found.cFileName;
    if (name != L"." && name != L"..") each(user, found.cFileName);
  } while (::FindNextFileW(search, &found) != 0);
  ::FindClose(search);
  return 0;
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
    .close = ::_close,
    .rename = rename,
    .remove = remove,
    .map = map,
    .unmap = unmap,
    .make_folder = make_folder,
    .open_to_update = open_to_update,
    .write_at = write_at,
    .lock = lock,
    .unlock = unlock,
    .set_modified = set_modified,
    .list = list,
};

}  // namespace ingot::core
