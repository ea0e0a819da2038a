// SPDX-License-Identifier: Apache-2.0
// Short spellings for tests of caches.
#pragma once

#include <stdlib.h>

#include <filesystem>
#include <stdexcept>
#include <string>
#include <vector>

#include "cache/memory_store.h"

namespace ingot::core::testing {

class TemporaryFolder {
 public:
  TemporaryFolder() {
    std::string name = std::filesystem::temp_directory_path() / "ingot-cache-XXXXXX";
    if (::mkdtemp(name.data()) == nullptr) throw std::runtime_error("no temporary folder");
    path_ = name;
  }
  ~TemporaryFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

inline std::vector<std::byte> bytes_of(size_t size, int value = 7) {
  return std::vector<std::byte>(size, static_cast<std::byte>(value));
}

inline CacheKey kernel(std::string_view text) { return make_key(EntryKind::kKernel, text); }

inline bool same(const Blob& blob, const std::vector<std::byte>& bytes) {
  return blob != nullptr && *blob == bytes;
}

}  // namespace ingot::core::testing
