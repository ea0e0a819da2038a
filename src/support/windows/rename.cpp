// SPDX-License-Identifier: Apache-2.0
#include "support/windows/rename.h"

#include <windows.h>

#include <cstring>
#include <string>
#include <vector>

#include "support/windows/text.h"

namespace ingot::core {
namespace {

constexpr int kRenameAttempts = 6;  // virus scanners open files that were just written
constexpr DWORD kPause = 10;        // milliseconds, doubled each time

// POSIX semantics, of NTFS since Windows 10: the name goes over at once, and who has the old file open keeps
// it.
bool rename_as_posix(const wchar_t* from, const wchar_t* to) {
  constexpr auto kRenameEx = static_cast<FILE_INFO_BY_HANDLE_CLASS>(22);  // FileRenameInfoEx
  constexpr DWORD kReplace = 1, kPosix = 2;
  constexpr DWORD kShare = FILE_SHARE_READ | FILE_SHARE_WRITE | FILE_SHARE_DELETE;
  const HANDLE file = ::CreateFileW(from, DELETE | SYNCHRONIZE, kShare, nullptr, OPEN_EXISTING,
                                    FILE_FLAG_OPEN_REPARSE_POINT | FILE_FLAG_BACKUP_SEMANTICS, nullptr);
  if (file == INVALID_HANDLE_VALUE) return false;
  const size_t bytes = std::wcslen(to) * sizeof(wchar_t);
  std::vector<uint64_t> memory((sizeof(FILE_RENAME_INFO) + bytes) / sizeof(uint64_t) + 1);
  auto* info = reinterpret_cast<FILE_RENAME_INFO*>(memory.data());
  const DWORD flags = kReplace | kPosix;  // where older headers have ReplaceIfExists alone
  std::memcpy(info, &flags, sizeof(flags));
  info->FileNameLength = static_cast<DWORD>(bytes);
  std::memcpy(info->FileName, to, bytes);
  const bool done = ::SetFileInformationByHandle(file, kRenameEx, info,
                                                 static_cast<DWORD>(sizeof(FILE_RENAME_INFO) + bytes)) != 0;
  ::CloseHandle(file);
  return done;
}

bool rename_over(const wchar_t* from, const wchar_t* to) {
  return ::MoveFileExW(from, to, MOVEFILE_REPLACE_EXISTING | MOVEFILE_WRITE_THROUGH) != 0;
}

// A file that is mapped cannot be replaced, but its name can be changed. It goes when nobody uses it any
// more, or is left to its folder; if this process ends in between, the file has that name and no other.
bool rename_around(const wchar_t* from, const wchar_t* to) {
  const std::wstring aside = std::wstring(from) + L".old";
  if (::MoveFileExW(to, aside.c_str(), 0) == 0) return false;
  const bool done = ::MoveFileExW(from, to, MOVEFILE_WRITE_THROUGH) != 0;
  const DWORD error = ::GetLastError();
  if (done) {
    ::DeleteFileW(aside.c_str());
  } else {
    ::MoveFileExW(aside.c_str(), to, 0);
  }
  ::SetLastError(error);
  return done;
}

bool is_in_use() {
  const DWORD error = ::GetLastError();
  return error == ERROR_ACCESS_DENIED || error == ERROR_SHARING_VIOLATION || error == ERROR_USER_MAPPED_FILE;
}

bool is_file(const wchar_t* path) {
  const DWORD attributes = ::GetFileAttributesW(path);
  return attributes != INVALID_FILE_ATTRIBUTES && (attributes & FILE_ATTRIBUTE_DIRECTORY) == 0;
}

}  // namespace

int rename_replacing(const wchar_t* from, const wchar_t* to) {
  DWORD pause = kPause;
  for (int attempt = 0; attempt < kRenameAttempts; ++attempt, pause *= 2) {
    if (rename_as_posix(from, to) || rename_over(from, to)) return 0;
    if (!is_in_use()) break;
    if (is_file(to) && rename_around(from, to)) return 0;
    if (!is_file(to)) break;
    if (attempt + 1 < kRenameAttempts) ::Sleep(pause);
  }
  return fail_with_last_error();
}

}  // namespace ingot::core
