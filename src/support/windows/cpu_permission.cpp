// SPDX-License-Identifier: Apache-2.0
#include <windows.h>

#include "support/cpu_features.h"

namespace ingot::core {

// Windows 11 and Server 2022 have the function.
bool request_cpu_features(CpuFeatures wanted) {
  if (!wanted.has(CpuFeature::kAmxTile)) return true;
  using Enable = BOOL(WINAPI*)(DWORD64 states);
  constexpr DWORD64 kTileData = DWORD64{1} << 18;
  const HMODULE kernel = ::GetModuleHandleW(L"kernel32.dll");
  const FARPROC found =
      kernel == nullptr ? nullptr : ::GetProcAddress(kernel, "EnableProcessOptionalXStateFeatures");
  return found != nullptr && reinterpret_cast<Enable>(reinterpret_cast<void*>(found))(kTileData) != 0;
}

}  // namespace ingot::core
