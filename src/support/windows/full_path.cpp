// SPDX-License-Identifier: Apache-2.0
#include "support/windows/full_path.h"

#include <windows.h>

namespace ingot::core {

std::wstring full_path(const wchar_t* path) {
  constexpr size_t kLongest = 240;
  std::wstring full(::GetFullPathNameW(path, 0, nullptr, nullptr), L'\0');
  full.resize(::GetFullPathNameW(path, static_cast<DWORD>(full.size()), full.data(), nullptr));
  if (full.empty()) return path;
  if (full.size() < kLongest || full.starts_with(L"\\\\?\\") || full.starts_with(L"\\\\.\\")) return full;
  return full.starts_with(L"\\\\") ? L"\\\\?\\UNC" + full.substr(1) : L"\\\\?\\" + full;
}

}  // namespace ingot::core
