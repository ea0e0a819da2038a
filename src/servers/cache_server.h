// SPDX-License-Identifier: Apache-2.0
// What a tier asks of a server: manifests by key, and contents by their SHA-256. Thread-safe. Failures are
// ServerFailures.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "servers/deadline.h"
#include "support/hash.h"

namespace ingot::core {

class CacheServer {
 public:
  CacheServer() = default;
  virtual ~CacheServer() = default;
  CacheServer(const CacheServer&) = delete;
  CacheServer& operator=(const CacheServer&) = delete;

  virtual std::string name() const = 0;

  // Nothing if it is not there, or not whole.
  virtual std::optional<std::string> read_manifest(const Digest& key, size_t limit, const Deadline&) = 0;
  virtual std::optional<std::vector<std::byte>> read_content(const Digest& digest, uint64_t length,
                                                             const Deadline&) = 0;
  virtual void write_manifest(const Digest& key, const std::string& manifest, const Deadline&) = 0;
  virtual void write_content(const Digest& digest, Bytes content, const Deadline&) = 0;

  virtual bool has_leases() const { return false; }
  // A lease belongs to whoever knows its token, and ends after `time` if it is not renewed.
  virtual bool take_lease(const Digest&, const std::string& /*token*/, std::chrono::milliseconds,
                          const Deadline&) {
    return true;
  }
  virtual void renew_lease(const Digest&, const std::string& /*token*/, std::chrono::milliseconds,
                           const Deadline&) {}
  virtual void end_lease(const Digest&, const std::string& /*token*/, const Deadline&) {}
};

}  // namespace ingot::core
