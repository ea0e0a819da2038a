// SPDX-License-Identifier: Apache-2.0
#include "support/windows/text.h"

#include <windows.h>

#include <algorithm>
#include <array>
#include <cerrno>

namespace ingot::core {
namespace {

struct Meaning {
  DWORD error;
  int number;
};

constexpr std::array kMeanings = {
    Meaning{ERROR_FILE_NOT_FOUND, ENOENT},      Meaning{ERROR_PATH_NOT_FOUND, ENOENT},
    Meaning{ERROR_INVALID_NAME, ENOENT},        Meaning{ERROR_BAD_PATHNAME, ENOENT},
    Meaning{ERROR_INVALID_DRIVE, ENOENT},       Meaning{ERROR_BAD_NETPATH, ENOENT},
    Meaning{ERROR_BAD_NET_NAME, ENOENT},        Meaning{ERROR_DIRECTORY, ENOTDIR},
    Meaning{ERROR_ACCESS_DENIED, EACCES},       Meaning{ERROR_SHARING_VIOLATION, EACCES},
    Meaning{ERROR_USER_MAPPED_FILE, EACCES},    Meaning{ERROR_DELETE_PENDING, EACCES},
    Meaning{ERROR_WRITE_PROTECT, EROFS},        Meaning{ERROR_FILE_EXISTS, EEXIST},
    Meaning{ERROR_ALREADY_EXISTS, EEXIST},      Meaning{ERROR_FILENAME_EXCED_RANGE, ENAMETOOLONG},
    Meaning{ERROR_TOO_MANY_OPEN_FILES, EMFILE}, Meaning{ERROR_NOT_ENOUGH_MEMORY, ENOMEM},
    Meaning{ERROR_OUTOFMEMORY, ENOMEM},         Meaning{ERROR_COMMITMENT_LIMIT, ENOMEM},
    Meaning{ERROR_DISK_FULL, ENOSPC},           Meaning{ERROR_HANDLE_DISK_FULL, ENOSPC},
    Meaning{ERROR_LOCK_VIOLATION, EWOULDBLOCK}, Meaning{ERROR_IO_PENDING, EWOULDBLOCK},
    Meaning{ERROR_BROKEN_PIPE, EPIPE},          Meaning{ERROR_NO_DATA, EPIPE},
    Meaning{ERROR_INVALID_PARAMETER, EINVAL},   Meaning{ERROR_MAPPED_ALIGNMENT, EINVAL},
    Meaning{ERROR_NOT_SUPPORTED, EOPNOTSUPP},   Meaning{ERROR_CANT_RESOLVE_FILENAME, ELOOP},
};

}  // namespace

std::string narrow(std::wstring_view text) {
  const int length = static_cast<int>(text.size());
  const int bytes = ::WideCharToMultiByte(CP_UTF8, 0, text.data(), length, nullptr, 0, nullptr, nullptr);
  std::string result(static_cast<size_t>(std::max(bytes, 0)), '\0');
  ::WideCharToMultiByte(CP_UTF8, 0, text.data(), length, result.data(), bytes, nullptr, nullptr);
  return result;
}

std::wstring widen(std::string_view text) {
  const int length = static_cast<int>(text.size());
  const int units = ::MultiByteToWideChar(CP_UTF8, MB_ERR_INVALID_CHARS, text.data(), length, nullptr, 0);
  std::wstring result(static_cast<size_t>(std::max(units, 0)), L'\0');
  ::MultiByteToWideChar(CP_UTF8, MB_ERR_INVALID_CHARS, text.data(), length, result.data(), units);
  return result;
}

int error_number() {
  const auto* const found = std::ranges::find(kMeanings, ::GetLastError(), &Meaning::error);
  return found == kMeanings.end() ? EIO : found->number;
}

int fail_with_last_error() {
  errno = error_number();
  return -1;
}

std::string last_error_text() {
  wchar_t* text = nullptr;
  const DWORD error = ::GetLastError();
  const DWORD flags =
      FORMAT_MESSAGE_ALLOCATE_BUFFER | FORMAT_MESSAGE_FROM_SYSTEM | FORMAT_MESSAGE_IGNORE_INSERTS;
  const DWORD length =
      ::FormatMessageW(flags, nullptr, error, 0, reinterpret_cast<wchar_t*>(&text), 0, nullptr);
  std::string result = length == 0 ? "error " + std::to_string(error) : narrow({text, length});
  ::LocalFree(text);
  result.erase(result.find_last_not_of(" \r\n.") + 1);
  return result;
}

}  // namespace ingot::core
