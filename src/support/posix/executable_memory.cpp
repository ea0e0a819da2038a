// SPDX-License-Identifier: Apache-2.0
#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <system_error>

#include <fmt/core.h>

#include "support/error.h"
#include "support/file.h"

namespace ingot::core {
namespace {

[[noreturn]] void fail(size_t size) {
  throw DeviceError("INGOT-D002",
                    fmt::format("cannot make {} bytes of memory executable: {}", size,
                                std::generic_category().message(errno)),
                    "allow executable memory for this process, or run with trust=\"none\"");
}

}  // namespace

std::shared_ptr<const std::byte> make_executable_copy(Bytes code) {
  const size_t size = std::max<size_t>(code.size(), 1);  // mmap rejects length 0
  void* address = ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (address == MAP_FAILED) fail(size);
  std::shared_ptr<std::byte> memory(static_cast<std::byte*>(address),
                                    [size](std::byte* block) { ::munmap(block, size); });
  std::ranges::copy(code, memory.get());
  if (::mprotect(address, size, PROT_READ | PROT_EXEC) != 0) fail(size);
  auto* begin = reinterpret_cast<char*>(address);
  __builtin___clear_cache(begin, begin + size);  // for processors without coherent instruction caches
  return memory;
}

}  // namespace ingot::core
