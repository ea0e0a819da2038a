// SPDX-License-Identifier: Apache-2.0
#include <windows.h>

#include <algorithm>

#include <fmt/core.h>

#include "support/error.h"
#include "support/file.h"
#include "support/windows/text.h"

namespace ingot::core {
namespace {

[[noreturn]] void fail(size_t size) {
  throw DeviceError("INGOT-D002",
                    fmt::format("cannot make {} bytes of memory executable: {}", size, last_error_text()),
                    "allow executable memory for this process, or run with trust=\"none\"");
}

}  // namespace

std::shared_ptr<const std::byte> make_executable_copy(Bytes code) {
  const size_t size = std::max<size_t>(code.size(), 1);
  void* address = ::VirtualAlloc(nullptr, size, MEM_RESERVE | MEM_COMMIT, PAGE_READWRITE);
  if (address == nullptr) fail(size);
  std::shared_ptr<std::byte> memory(static_cast<std::byte*>(address),
                                    [](std::byte* block) { ::VirtualFree(block, 0, MEM_RELEASE); });
  std::ranges::copy(code, memory.get());
  DWORD before = 0;
  if (::VirtualProtect(address, size, PAGE_EXECUTE_READ, &before) == 0) fail(size);
  ::FlushInstructionCache(::GetCurrentProcess(), address, size);
  return memory;
}

}  // namespace ingot::core
